import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { type BookingPayload, parseJson, validatePayload } from "@booking-events/schema";
import { insertContents } from "@booking-events/store/testing/insert-content";
import { expect, test } from "vitest";
import { toBookingColumns } from "./booking-columns.ts";
import { aChange } from "./testing/a-change.ts";

const { pool } = useTestDatabase();
const examples = join(import.meta.dirname, "../../schema/examples");
/** The booking's own times, which no change has. */
const timesOfBooking = ["created_at", "updated_at", "deleted_at"];

function readPayloads(): BookingPayload[] {
  const files = globSync("*.json", { cwd: examples }).map((file) => readFileSync(join(examples, file), "utf8"));
  return files.flatMap((file) => {
    const result = validatePayload("create", (parseJson(file) as { payload: unknown }).payload);
    return result.success ? [result.payload] : [];
  });
}

test("a change has the columns and values of the view booking_details, whatever was sent", async () => {
  const payloads = readPayloads();
  expect(payloads.length).toBeGreaterThan(20);
  const bookings = payloads.map((payload, number) => ({ reference: `TRIP-${number}`, payload, defaultCountry: "FR" }));
  await insertContents(pool, bookings);
  const { rows } = await pool.query<{ view: Record<string, unknown>; payload: string }>(
    `select to_jsonb(booking_details) as view, bookings.payload::text
     from booking_details join bookings using (partner, reference_kind, reference) order by reference`,
  );
  expect(rows).toHaveLength(payloads.length);
  for (const { view, payload } of rows) {
    const change = aChange({
      bookingId: String(view["booking_id"]),
      reference: String(view["reference"]),
      sequence: Number(view["sequence"]),
      defaultCountry: "FR",
    });
    const columns = toBookingColumns(change, parseJson(payload) as BookingPayload);
    for (const name of timesOfBooking) delete view[name];
    expect(inOneForm(columns)).toEqual(inOneForm(view));
  }
});

/** PostgreSQL and JavaScript write moments and JSON within texts in other forms. */
function inOneForm(columns: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(columns).map(([name, value]) => {
      if (typeof value !== "string") return [name, value];
      if (name.endsWith("_at")) return [name, new Date(value).toISOString()];
      return [name, /^[[{]/.test(value) ? JSON.stringify(JSON.parse(value), undefined, 1) : value];
    }),
  );
}

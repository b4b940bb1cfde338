import { randomUUID } from "node:crypto";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { BookingPayload } from "@booking-events/schema";
import { beforeEach, expect, test } from "vitest";
import { inTransaction } from "../connect/transaction.ts";
import { createDigestKey } from "../guests/digest-key.ts";
import { hashContacts } from "../guests/guest-contacts.ts";
import { insertEvents } from "../tables/booking-events.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { contentColumns } from "../tables/content-columns.ts";
import { insertBookings, readLogged } from "../tables/save-bookings.ts";
import { renormaliseBookings } from "./renormalise-bookings.ts";

const { pool } = useTestDatabase({ maxConnections: 4 });
const key = createDigestKey(Buffer.from("any key"));

beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes"));

const sent: BookingPayload = {
  ...{ consumerPhone: "+33 6 12 34 56 78", consumerEmail: "ada@example.com", consumerTripIsLocal: "yes" },
  ...{ consumerTripArrivalDate: "2026-06-14", consumerPartnerExternalReference: "C-1", agentTimezone: "Europe/Paris" },
};

async function save(reference: string, { partner = "acme", earlier = {} as BookingPayload } = {}): Promise<void> {
  const identity = {
    partner,
    referenceKind: "trip",
    reference,
    bookingKey: bookingKey(partner, "trip", reference),
  } as const;
  const event = (payload: BookingPayload, sequence: number) => ({
    ...({
      ...identity,
      id: randomUUID(),
      kind: "update",
      sequence,
      idempotencyKey: null,
      defaultCountry: "FR",
    } as const),
    ...({
      payload: JSON.stringify(payload),
      contentDigest: "00".repeat(16),
      outcome: "updated",
      duplicateOf: null,
    } as const),
    ...{ warnings: [], after: null, receivedAt: new Date() },
  });
  const [first, last] = [event(earlier, 1), event(sent, 2)];
  await insertEvents(pool, [first, last]);
  const contents = [earlier, sent].map((payload) => ({ payload, defaultCountry: "FR" }));
  const bookings = await readLogged(pool, [
    {
      ...{ ...identity, bookingId: randomUUID(), revision: 2, newContent: "logged" },
      guestHashes: [...new Set(contents.flatMap((content) => hashContacts(key, content)))],
      state: {
        ...{ state: "active", eventId: last.id, sequence: 2, lastSequence: 2, createdAt: new Date() },
        ...{ updatedAt: new Date(), deletedAt: null },
        content: { digest: "00".repeat(16), eventId: last.id, newestKeylessSequence: null },
      },
    },
  ]);
  await insertBookings(pool, bookings);
}

async function renormalise(options: { partner?: string; isDryRun?: boolean } = {}) {
  const sum = { bookings: 0, changed: 0, busy: 0 };
  for await (const page of renormaliseBookings(pool, key, { isDryRun: false, ...options })) {
    sum.bookings += page.bookings;
    sum.changed += page.changed;
    sum.busy += page.busy;
  }
  return sum;
}

const rows = async () => (await pool.query("select to_jsonb(bookings) as row from bookings order by reference")).rows;

/** Gives every column that follows from the payload another value, but leaves the country that it is read by. */
async function spoil(where = "true"): Promise<void> {
  const types = { text: "'?'", boolean: "false", date: "'1999-01-01'", timestamptz: "'1999-01-01Z'", bigint: "7" };
  const wrong = contentColumns
    .filter(({ name }) => name !== "default_country")
    .map(({ name, type }) => `${name} = ${types[type as keyof typeof types]}`);
  await pool.query(`update bookings set ${wrong.join(", ")}, guest_hashes = '{7}' where ${where}`);
}

test("columns and hashes that are wrong are put right, and a second run has nothing to do", async () => {
  for (let number = 0; number < 250; number += 1)
    await save(`T-${number}`, { earlier: { consumerEmail: `${number}@x.org` } });
  const right = await rows();
  await spoil("reference <> 'T-7'");
  expect(await renormalise({ isDryRun: true })).toEqual({ bookings: 250, changed: 249, busy: 0 });
  expect(await rows()).not.toEqual(right);
  expect(await renormalise()).toEqual({ bookings: 250, changed: 249, busy: 0 });
  expect(await rows()).toEqual(right);
  expect(right[0]?.row).toMatchObject({ consumer_phone: "+33612345678", agent_timezone: "Europe/Paris" });
  expect(await renormalise()).toEqual({ bookings: 250, changed: 0, busy: 0 });
  expect((await pool.query("select from booking_changes")).rows).toEqual([]);
});

test("only the partner's bookings are read, and erased ones and those without a content stay empty", async () => {
  await save("T-1");
  await save("T-2", { partner: "other" });
  await spoil();
  expect(await renormalise({ partner: "other" })).toEqual({ bookings: 1, changed: 1, busy: 0 });
  await pool.query(
    "update bookings set erased_at = now(), payload = null, guest_hashes = '{}' where reference = 'T-1'",
  );
  await pool.query("update bookings set payload = null where reference = 'T-2'");
  await pool.query("update booking_events set payload = null");
  expect(await renormalise()).toEqual({ bookings: 1, changed: 1, busy: 0 });
  const empty = (await rows()).find(({ row }) => row.reference === "T-2")?.row;
  expect(contentColumns.filter(({ name }) => empty[name] !== null)).toEqual([]);
  expect(empty.guest_hashes).toEqual([]);
});

test("a change at the same time is not overwritten, and a booking that stays locked is reported", async () => {
  await save("T-1");
  await save("T-2");
  await spoil();
  await inTransaction(pool, async (client) => {
    await client.query("update bookings set payload = $1, revision = 3 where reference = 'T-1'", [
      { ...sent, consumerTripIsLocal: "no", agentTimezone: "Europe/London" },
    ]);
    expect(await renormalise()).toEqual({ bookings: 2, changed: 1, busy: 1 });
  });
  const [changed] = await rows();
  expect(changed?.row).toMatchObject({ revision: 3, payload: { agentTimezone: "Europe/London" }, agent_timezone: "?" });
  expect(await renormalise()).toEqual({ bookings: 2, changed: 1, busy: 0 });
  expect((await rows())[0]?.row).toMatchObject({ agent_timezone: "Europe/London", consumer_trip_is_local: false });
});

test("a booking that changes after it was read is read again", async () => {
  await save("T-1");
  await spoil();
  let hasChanged = false;
  // Between what is read and what is written.
  const racing = new Proxy(pool, {
    get(target, name) {
      if (name !== "query") return Reflect.get(target, name, target);
      return async (...statement: Parameters<typeof pool.query>) => {
        const result = await target.query(...statement);
        if (!hasChanged) await target.query("update bookings set payload = $1", [{ agentTimezone: "Europe/London" }]);
        hasChanged = true;
        return result;
      };
    },
  });
  const pages = [];
  for await (const page of renormaliseBookings(racing, key, { isDryRun: false })) pages.push(page);
  expect(pages).toEqual([{ bookings: 1, changed: 1, busy: 0 }]);
  expect((await rows())[0]?.row).toMatchObject({ agent_timezone: "Europe/London", consumer_phone: null });
});

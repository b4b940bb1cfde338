import { readFileSync } from "node:fs";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
import { insertEvents } from "./booking-events.ts";
import { bookingKey } from "./booking-key.ts";
import { insertBookings } from "./bookings.ts";
import type { Queryable } from "./database.ts";

const runbook = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8");
const erasures = Array.from(runbook.matchAll(/```sql\n(begin;\n.*?)```/gs), ([, sql = ""]) => sql);
const at = new Date("2020-01-01");

const { pool } = useTestDatabase();

const common = {
  partner: "acme",
  referenceKind: "trip" as const,
  reference: "TRIP-1",
  bookingKey: bookingKey("acme", "trip", "TRIP-1"),
};
const idOf = (number: number) => `0199a000-0000-7000-8000-00000000000${number}`;

function insertEvent(client: Queryable, number: number): Promise<boolean> {
  const event = { id: idOf(number), kind: "delete", sequence: number, outcome: "deleted", payload: "{}" } as const;
  const rest = { idempotencyKey: null, duplicateOf: null, after: null, warnings: [], receivedAt: at };
  return insertEvents(client, [{ ...common, ...event, ...rest, contentDigest: "00".repeat(32) }]);
}

async function countRows(): Promise<unknown> {
  const { rows } = await pool.query(
    "select (select count(*)::int from bookings) as bookings, (select count(*)::int from booking_events) as events",
  );
  return rows[0];
}

test.each(erasures)(
  "the runbook's erasure leaves no event without its booking, even if one is applied at the same time: %s",
  async (sql) => {
    await insertEvent(pool, 1);
    const decided = { state: "deleted", eventId: idOf(1), sequence: 1, lastSequence: 1, content: null } as const;
    const state = { ...decided, createdAt: at, updatedAt: at, deletedAt: at };
    await insertBookings(pool, [{ ...common, state, revision: 1, keepsPayload: false }]);
    const [worker, operator] = [await pool.connect(), await pool.connect()];
    try {
      await worker.query("begin");
      await worker.query("select from bookings for update");
      await insertEvent(worker, 2);
      const erasing = operator.query(sql);
      await waitFor(async () => {
        const { rows } = await pool.query(
          "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
        );
        expect(rows).toHaveLength(1);
      });
      await worker.query("commit");
      await erasing;
      expect(await countRows()).toEqual({ bookings: 0, events: 0 });
    } finally {
      worker.release(true);
      operator.release(true);
    }
  },
);

test("one guest's dead letters go, and those of the other kind of reference stay", async () => {
  await pool.query(
    `insert into dead_letters (event_id, partner, kind, reference_kind, reference, error_code, error, attempts, envelope)
     select id, 'acme', 'create', kind, 'TRIP-1', 'X', 'x', 1, ''
     from unnest($1::uuid[], $2::text[]) as letter (id, kind)`,
    [
      [idOf(1), idOf(2), idOf(3)],
      ["trip", "consumer", null],
    ],
  );
  for (const sql of erasures) await pool.query(sql);
  const { rows } = await pool.query("select event_id from dead_letters");
  expect(rows).toEqual([{ event_id: idOf(2) }]);
});

test("the runbook has both", () => {
  expect(erasures).toHaveLength(2);
});

import { sampleEvent, sampleEventId } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import { beforeEach, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";

const { pool } = useTestDatabase({ maxConnections: 2 });
const options = { duplicateWindowMs: 72 * 3_600_000 };

beforeEach(async () => {
  await pool.query("truncate bookings, booking_events, booking_changes");
});

/** Events are numbered in the order of receipt, in seconds. */
function event(number: number, kind: EventKind, note: string, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const content = kind === "delete" ? {} : { note };
  return sampleEvent(number, {
    kind,
    payload: { consumerTripPartnerExternalReference: "TRIP-1", ...content },
    ...more,
  });
}

async function apply(...events: EventEnvelope[]): Promise<void> {
  for (const each of events) await applyEvents(pool, [each], options);
}

async function readHistory(): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select event_id, state_after, decided_by, content_from, payload_after ->> 'note' as note, outcome
     from booking_history where partner = 'acme' and reference = 'TRIP-1' order by sequence, event_id`,
  );
  return rows.map((row) => [
    Number(row.event_id.slice(-4)),
    row.outcome,
    row.state_after,
    row.decided_by && Number(row.decided_by.slice(-4)),
    row.content_from && Number(row.content_from.slice(-4)),
    row.note,
  ]);
}

async function readAt(seconds: number): Promise<unknown> {
  const at = new Date(event(0, "create", "").sequence / 1_000 + seconds * 1_000);
  const { rows } = await pool.query(
    `select event_id, state_after, payload_after ->> 'note' as note from booking_at($1)
     where partner = 'acme' and reference = 'TRIP-1'`,
    [at],
  );
  const [row] = rows;
  return row && [Number(row.event_id.slice(-4)), row.state_after, row.note];
}

test("the history has a row for each event, with the state after it, in whatever order they arrived", async () => {
  const key = { idempotencyKey: "key-1" };
  await apply(event(3, "update", "B"), event(5, "delete", ""), event(1, "create", "A"), event(2, "update", "A", key));
  await apply(event(4, "update", "A", key), event(6, "delete", ""), event(7, "create", "C"));
  expect(await readHistory()).toEqual([
    [1, "superseded", "active", 1, 1, "A"],
    [2, "superseded", "active", 1, 2, "A"],
    [3, "updated", "active", 3, 3, "B"],
    [4, "duplicate", null, null, null, null],
    [5, "deleted", "deleted", 5, 3, "B"],
    [6, "unchanged", "deleted", 5, 3, "B"],
    [7, "recreated", "active", 7, 7, "C"],
  ]);
});

test("a booking can be read as it was at any time of receipt", async () => {
  await apply(event(1, "create", "A"), event(3, "update", "B"), event(5, "delete", ""), event(7, "update", "A"));
  expect(await Promise.all([0, 1, 2, 3, 4.5, 6, 7, 900].map(readAt))).toEqual([
    undefined,
    [1, "active", "A"],
    [1, "active", "A"],
    [3, "active", "B"],
    [3, "active", "B"],
    [5, "deleted", "B"],
    [7, "active", "A"],
    [7, "active", "A"],
  ]);
});

test("the booking still has a content that the log has lost", async () => {
  await apply(event(1, "create", "A"), event(2, "delete", ""), event(3, "delete", ""));
  await pool.query("delete from booking_events where id = $1", [sampleEventId(1)]);
  expect(await readHistory()).toEqual([
    [2, "deleted", "deleted", 2, 1, "A"],
    [3, "unchanged", "deleted", 2, 1, "A"],
  ]);
  expect(await readAt(900)).toEqual([3, "deleted", "A"]);
});

test("one booking is found without reading the others", async () => {
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, outcome, received_at,
       state_after)
     select gen_random_uuid(), 'acme', 'create', 'trip', 'T-' || n, sha256(n::text::bytea), n, 'created', now(), 'active'
     from generate_series(1, 20000) as n`,
  );
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, last_sequence,
       revision, created_at, updated_at)
     select booking_key, partner, reference_kind, reference, state_after, id, sequence, sequence, 1, now(), now()
     from booking_events`,
  );
  await pool.query("analyze bookings, booking_events");
  for (const source of ["booking_history", "booking_at(now())"]) {
    const { rows } = await pool.query(
      `explain (analyze, buffers, format json) select * from ${source} where partner = 'acme' and reference = 'T-77'`,
    );
    const plan = rows[0]["QUERY PLAN"][0];
    expect(plan.Plan["Actual Rows"]).toBe(1);
    expect(plan.Plan["Shared Hit Blocks"] + plan.Plan["Shared Read Blocks"], JSON.stringify(plan)).toBeLessThan(60);
  }
});

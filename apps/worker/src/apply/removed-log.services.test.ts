import { readFile } from "node:fs/promises";
import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import { maintain } from "@booking-events/store";
import { beforeEach, describe, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";

const clocksAgree = { findClockProblem: async () => null };

const { pool } = useTestDatabase({ maxConnections: 4 });

const day = 24 * 60 * 60 * 1_000;
const now = Date.now();
/** Older than the log is kept, in the middle of a month. */
const longAgo = Date.UTC(new Date(now).getUTCFullYear(), new Date(now).getUTCMonth() - 20, 15);
const rules = { retentionDays: 400, deletedRetentionDays: 30, deadLetterRetentionDays: 90 };
const options = { duplicateWindowMs: 3 * day };

beforeEach(async () => {
  await pool.query(`truncate bookings, booking_events, booking_changes; update log_retention set horizon = null;
    update feed_position set last_id = 0, kept_from = 1`);
  await createPartition(longAgo);
});

/** As if the database had been there at that time. */
async function createPartition(time: number): Promise<void> {
  const month = new Date(time).toISOString().slice(0, 7);
  const name = `booking_events_${month.replace("-", "_")}`;
  await pool.query(
    `drop table if exists ${name}; create table ${name} (like booking_events including all);
     do $$ begin execute format('alter table booking_events attach partition ${name} for values from (%L) to (%L)',
       first_event_id('${month}-01T00:00Z'), first_event_id('${month}-01T00:00Z'::timestamptz + interval '28 days')); end $$`,
  );
}

/** Events are numbered within their minute. */
function event(time: number, kind: EventKind, note: string, more: Partial<EventEnvelope> = {}): EventEnvelope {
  const hex = time.toString(16).padStart(12, "0");
  return sampleEvent(0, {
    eventId: `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`,
    kind,
    sequence: time * 1_000,
    payload: { consumerTripPartnerExternalReference: "TRIP-1", ...(kind === "delete" ? {} : { note }) },
    ...more,
  });
}

async function apply(...events: EventEnvelope[]): Promise<string> {
  const outcomes = await applyEvents(pool, events, { ...options, isAlone: true });
  return events.map(({ eventId }) => outcomes.get(eventId)).join(", ");
}

async function readBooking() {
  const { rows } = await pool.query(
    `select state, payload ->> 'note' as note, created_at as "createdAt", deleted_at as "deletedAt", revision
     from bookings`,
  );
  return rows[0];
}

async function readLog(): Promise<{ outcome: string; payload: unknown; idempotency_key: string | null }[]> {
  const { rows } = await pool.query("select outcome, payload, idempotency_key from booking_events order by sequence");
  return rows;
}

async function dropOldPartition(): Promise<void> {
  const { droppedPartitions, problems } = await maintain(pool, rules, clocksAgree);
  expect([droppedPartitions.length, problems]).toEqual([1, []]);
}

describe("a late event of a booking whose older events were removed", () => {
  const created = { createdAt: new Date(longAgo) };

  test("takes its place before the later ones, and the booking stays as old as it is", async () => {
    await apply(event(longAgo, "create", "A"));
    await apply(event(now - day, "update", "B"));
    await dropOldPartition();
    expect(await apply(event(now - 2 * day, "update", "late"))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ ...created, state: "active", note: "B", revision: 2 });
  });

  test("decides the state if the later ones don't", async () => {
    await apply(event(longAgo, "create", "A"));
    // It repeats the content. So the late deletion must be followed by a recreation.
    await apply(event(now - day, "update", "A"));
    await dropOldPartition();
    expect(await apply(event(now - 2 * day, "update", "late"))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ ...created, state: "active", note: "A", revision: 1 });
    expect(await apply(event(now - 3 * day, "delete", ""))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ ...created, state: "active", note: "A", revision: 1 });
  });

  test("is folded in though the state before it names removed events", async () => {
    await apply(event(longAgo, "create", "A"));
    // The content of the deleted booking is that of a removed event, and so is the state after the second deletion.
    await apply(event(now - 9 * day, "delete", ""), event(now - 5 * day, "delete", ""));
    await dropOldPartition();
    expect(await apply(event(now - 10 * day, "delete", ""))).toBe("deleted");
    expect(await readBooking()).toMatchObject({ ...created, state: "deleted", note: "A", revision: 2 });
    expect(await apply(event(now - 7 * day, "update", "B"))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ ...created, state: "deleted", note: "B" });
    expect(await apply(event(now - day, "update", "C"))).toBe("recreated");
    expect(await apply(event(now - 2 * day, "delete", ""))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ ...created, state: "active", note: "C" });
  });

  test("is superseded if the log has nothing of the booking", async () => {
    await apply(event(longAgo, "create", "A"), event(now - day, "update", "B"));
    await dropOldPartition();
    await pool.query("delete from booking_events");
    expect(await apply(event(now - 2 * day, "update", "late"))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ ...created, state: "active", note: "B", revision: 2 });
  });

  test("an event on time needs none of them", async () => {
    await apply(event(longAgo, "create", "A", { idempotencyKey: "k-1" }));
    await dropOldPartition();
    expect(await apply(event(now, "update", "A"))).toBe("unchanged");
    expect(await apply(event(now + 1, "update", "B"))).toBe("updated");
    expect(await readBooking()).toMatchObject({ ...created, state: "active", note: "B", revision: 2 });
  });
});

describe("an event that is older than the log", () => {
  test("is recorded without content, once, and changes nothing", async () => {
    await apply(event(now, "create", "A"));
    await dropOldPartition();
    const old = event(longAgo, "delete", "", { idempotencyKey: "k-1" });
    expect(await apply(old, event(now + 1, "update", "B"))).toBe("expired, updated");
    expect(await apply(old)).toBe("expired");
    expect(await readBooking()).toMatchObject({ state: "active", note: "B", revision: 2, createdAt: new Date(now) });
    expect(await readLog()).toEqual([
      { outcome: "expired", payload: null, idempotency_key: null },
      expect.objectContaining({ outcome: "created" }),
      expect.objectContaining({ outcome: "updated" }),
    ]);
    // A later event takes no notice of it.
    expect(await apply(event(now - day, "update", "late", { idempotencyKey: "k-1" }))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ state: "active", note: "B" });
  });

  test("is applied while nothing of the log was removed", async () => {
    expect(await apply(event(longAgo, "create", "A"))).toBe("created");
  });

  test("creates no booking", async () => {
    await dropOldPartition();
    expect(await apply(event(longAgo, "create", "A"))).toBe("expired");
    expect(await readBooking()).toBeUndefined();
    expect((await pool.query("select from booking_changes")).rowCount).toBe(0);
  });

  test("is removed some day, counted from when it was recorded", async () => {
    await dropOldPartition();
    await apply(event(longAgo, "create", "A"));
    await maintain(pool, rules, clocksAgree);
    expect(await readLog()).toHaveLength(1);
    await pool.query("update booking_events set processed_at = processed_at - interval '432 days'");
    await maintain(pool, rules, clocksAgree);
    expect(await readLog()).toHaveLength(0);
  });
});

describe("a booking that was deleted long ago", () => {
  const deletedAt = now - 40 * day;

  async function createAndDelete(): Promise<void> {
    await apply(event(deletedAt - day, "create", "A"), event(deletedAt, "delete", ""));
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(1);
  }

  test("and its events lose their content, and stay", async () => {
    await createAndDelete();
    expect(await readBooking()).toMatchObject({ state: "deleted", note: null, deletedAt: new Date(deletedAt) });
    expect((await readLog()).map(({ outcome, payload }) => [outcome, payload])).toEqual([
      ["created", null],
      ["deleted", null],
    ]);
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(0);
  });

  test("is recreated as ever", async () => {
    await createAndDelete();
    expect(await apply(event(now, "update", "A"))).toBe("recreated");
    expect(await readBooking()).toMatchObject({ state: "active", note: "A", revision: 3 });
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(0);
    expect(await readBooking()).toMatchObject({ note: "A" });
  });

  test("loses content that comes later too", async () => {
    await createAndDelete();
    expect(await apply(event(deletedAt - 1, "update", "late"))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ state: "deleted", note: "late" });
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(1);
    expect(await readBooking()).toMatchObject({ state: "deleted", note: null });
    expect((await readLog()).every(({ payload }) => payload === null)).toBe(true);
  });

  test("keeps its content if it was deleted a short time ago, is in use, or is current", async () => {
    await apply(event(now - 2 * day, "create", "A"), event(now - day, "delete", ""));
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(0);
    await pool.query("update bookings set deleted_at = now() - interval '1 year'");
    const worker = await pool.connect();
    await worker.query("begin; select from bookings for update");
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(0);
    await worker.query("rollback");
    worker.release();
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(1);
  });

  test("an event that repeats removed content can bring back the booking, but not the content", async () => {
    // The second update repeats the content of the first, so it is a retry. With an update between them, it is none.
    await apply(event(deletedAt - 1, "create", "A"), event(deletedAt, "delete", ""));
    expect(await apply(event(deletedAt + 2, "update", "A"))).toBe("duplicate");
    await maintain(pool, rules, clocksAgree);
    expect(await apply(event(deletedAt + 1, "update", "B"))).toBe("superseded");
    expect(await readBooking()).toMatchObject({ state: "active", note: null });
    expect(await apply(event(now, "update", "C"))).toBe("updated");
    expect(await readBooking()).toMatchObject({ state: "active", note: "C" });
  });
});

test("events count again after a wrong clock has removed the log, by the statements of the runbook", async () => {
  const runbook = await readFile(new URL("../../../../docs/runbook.md", import.meta.url), "utf8");
  const [, statements = ""] = /^## A wrong clock has removed the log$.*?```sql\n(.*?)```/ms.exec(runbook) ?? [];
  await apply(event(now - day, "create", "A"));
  const constraint = "log_retention_horizon_check";
  await pool.query(
    `alter table log_retention drop constraint ${constraint};
     update log_retention set horizon = now() + interval '40 days'; truncate booking_events`,
  );
  expect(await apply(event(now - 60_000, "update", "too late"))).toBe("expired");
  await pool.query(statements);
  await pool.query(`alter table log_retention add constraint ${constraint} check (horizon <= now())`);
  // It waited meanwhile.
  expect(await apply(event(now - day + 1, "update", "B"))).toBe("updated");
  // Where it belongs, nothing is known any more.
  expect(await apply(event(now - 2 * day, "delete", ""))).toBe("expired");
  expect(await readBooking()).toMatchObject({ state: "active", note: "B", revision: 2 });
});

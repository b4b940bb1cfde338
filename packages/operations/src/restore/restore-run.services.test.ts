import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { NumberedEvent } from "@booking-events/queue";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RestoreRun } from "./restore-run.ts";

const { pool } = useTestDatabase();
const progress = { count: () => {}, wait: () => {} };

beforeEach(async () => {
  // The clock stands still: nothing is given up by itself.
  vi.useFakeTimers({ toFake: ["Date"] });
  await pool.query("truncate booking_events, dead_letters");
});
afterEach(() => void vi.useRealTimers());

const idOf = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;

function eventsFrom(first: number, count: number): NumberedEvent[] {
  return Array.from({ length: count }, (_, index) => ({ eventId: idOf(first + index) }) as NumberedEvent);
}

async function start(count: number): Promise<RestoreRun> {
  const run = new RestoreRun(pool, async () => {});
  await run.queue(eventsFrom(0, count), progress);
  return run;
}

/** The events have been applied, with this outcome. */
async function apply(numbers: number[], outcome = "updated"): Promise<void> {
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, outcome, received_at)
     select id, 'acme', 'update', 'trip', 'T', '', 1, $2, now() from unnest($1::uuid[]) as id`,
    [numbers.map(idOf), outcome],
  );
}

async function giveUp(number: number): Promise<void> {
  await pool.query(
    `insert into dead_letters (event_id, error_code, error, attempts, envelope, failed_at)
     values ($1, 'x', '', 1, '', now())`,
    [idOf(number)],
  );
}

/** The run has seen all that was there when this was called. */
async function seeAll(): Promise<void> {
  const query = vi.spyOn(pool, "query");
  await waitFor(() => expect(query.mock.calls.length).toBeGreaterThanOrEqual(4));
  query.mockRestore();
}

const results = { queued: 0, applied: 0, superseded: 0, erased: 0, dead: 0, waiting: 0 };

test("what has become of each event is counted once, however many they are", async () => {
  const run = new RestoreRun(pool, async () => {});
  await run.queue(eventsFrom(0, 1_000), progress);
  await run.queue(eventsFrom(1_000, 203), progress);
  await apply([0], "superseded");
  await apply([1, 2], "erased");
  await apply([3], "unchanged");
  await apply(Array.from({ length: 1_198 }, (_, index) => 4 + index));
  await giveUp(1_202);
  // It was replayed.
  await giveUp(5);
  expect(await run.waitForResults(undefined)).toEqual({
    ...results,
    ...{ queued: 1_203, applied: 1_199, superseded: 1, erased: 2, dead: 1 },
  });
});

test("results are waited for as long as some come", async () => {
  const run = await start(3);
  const ended = run.waitForResults(undefined);
  for (const number of [0, 1]) {
    vi.setSystemTime(Date.now() + 20_000);
    await apply([number]);
    await seeAll();
  }
  vi.setSystemTime(Date.now() + 30_000);
  expect(await ended).toEqual({ ...results, queued: 3, applied: 2, waiting: 1 });
});

test("once the command is interrupted, nothing is waited for", async () => {
  const run = await start(2);
  const controller = new AbortController();
  const ended = run.waitForResults(controller.signal);
  await apply([0]);
  await seeAll();
  controller.abort();
  expect(await ended).toEqual({ ...results, queued: 2, applied: 1, waiting: 1 });
});

test("nothing is queued for bookings that stay as they are", async () => {
  const queue = vi.fn();
  const run = new RestoreRun(pool, queue);
  await run.queue([], progress);
  expect(queue).not.toHaveBeenCalled();
  expect(await run.waitForResults(undefined)).toEqual(results);
});

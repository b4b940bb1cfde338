import type { EventEnvelope } from "@booking-events/schema";
import { createTestDatabase } from "@booking-events/scripts/testing";
import { createPool } from "@booking-events/store";
import type { Pool } from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { applyEvents } from "./apply-events.ts";
import { createBatchApplier } from "./apply-in-batches.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: Pool;
/** The sizes of the batches that were begun, in their order. */
let batchSizes: number[];

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({ databaseUrl: database.url, applicationName: "test", maxConnections: 4, onError: () => {} });
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

beforeEach(async () => {
  batchSizes = [];
  await pool.query("truncate bookings, booking_events, booking_changes, idempotency_keys");
});

function createApplier({ maxBatchSize = 200, maxConcurrentBatches = 1, signal = new AbortController().signal } = {}) {
  return createBatchApplier({
    applyBatch(envelopes) {
      batchSizes.push(envelopes.length);
      return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
    },
    ...{ maxBatchSize, maxConcurrentBatches, signal },
  });
}

function createEvent(number: number, payload: object = {}): EventEnvelope {
  return {
    version: 1,
    eventId: `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`,
    kind: "create",
    partner: "acme",
    sequence: 1_763_596_800_000_000 + number,
    receivedAt: "2026-11-20T00:00:00.000Z",
    idempotencyKey: null,
    payload: { consumerTripPartnerExternalReference: `TRIP-${number}`, ...payload },
  };
}

const createEvents = (count: number) => Array.from({ length: count }, (_, index) => createEvent(index));
/** JSON that `jsonb` can't hold, though the envelope's parser would have stopped it. */
const poison = (number: number) => createEvent(number, { note: "\u0000" });

async function countTransactions(): Promise<number> {
  const { rows } = await pool.query("select count(distinct xmin::text)::int as count from booking_events");
  return rows[0].count;
}

test("an event that comes alone is applied at once", async () => {
  expect(await createApplier()(createEvent(1))).toBe("created");
  expect(batchSizes).toEqual([1]);
});

test("events that come together are applied in one transaction, and each gets its outcome", async () => {
  const apply = createApplier();
  const events = [...createEvents(20), { ...createEvent(3), eventId: createEvent(99).eventId, sequence: 2 ** 52 }];
  const outcomes = await Promise.all(events.map(apply));
  expect(outcomes).toEqual([...Array(20).fill("created"), "unchanged"]);
  expect(await countTransactions()).toBe(1);
});

test("the same event twice in a batch is applied once", async () => {
  const apply = createApplier();
  expect(await Promise.all([apply(createEvent(1)), apply(createEvent(1))])).toEqual(["created", "created"]);
  expect((await pool.query("select from booking_events")).rowCount).toBe(1);
});

test("what comes while a batch is applied makes up the next ones, none larger than the limit", async () => {
  const apply = createApplier({ maxBatchSize: 8 });
  const first = apply(createEvent(0));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  await Promise.all([first, ...createEvents(21).slice(1).map(apply)]);
  expect(batchSizes).toEqual([1, 8, 8, 4]);
});

test("no more batches than allowed are applied at once", async () => {
  let [running, most] = [0, 0];
  const apply = createBatchApplier({
    async applyBatch(envelopes) {
      running += 1;
      most = Math.max(most, running);
      const outcomes = await applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
      running -= 1;
      return outcomes;
    },
    maxBatchSize: 5,
    maxConcurrentBatches: 2,
    signal: new AbortController().signal,
  });
  await Promise.all(createEvents(50).map(apply));
  expect(most).toBe(2);
});

describe("of two batches at a time", () => {
  /** Applies events one in a batch, and tells which are being applied together. */
  async function applyTogether(events: EventEnvelope[]) {
    const together: string[] = [];
    const running: number[] = [];
    const apply = createBatchApplier({
      async applyBatch(envelopes) {
        const numbers = envelopes.map(({ sequence }) => sequence - createEvent(0).sequence);
        running.push(...numbers);
        together.push(running.join());
        const outcomes = await applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
        for (const number of numbers) running.splice(running.indexOf(number), 1);
        return outcomes;
      },
      ...{ maxBatchSize: 1, maxConcurrentBatches: 2, signal: new AbortController().signal },
    });
    return { outcomes: await Promise.all(events.map(apply)), together };
  }
  const trip = (reference: string) => ({ consumerTripPartnerExternalReference: reference });

  test("each has events of other bookings, in the order in which they came", async () => {
    const events = [
      createEvent(1, trip("A")),
      createEvent(2, { ...trip("A"), note: "second" }),
      createEvent(3, { ...trip("A"), note: "third" }),
      createEvent(4, trip("B")),
    ];
    const { outcomes, together } = await applyTogether(events);
    expect(outcomes).toEqual(["created", "updated", "updated", "created"]);
    expect(together.slice(0, 2)).toEqual(["1", "1,4"]);
    expect(together.filter((numbers) => /[123],[123]/.test(numbers))).toEqual([]);
  });

  test("an event that waits for its booking is not overtaken by one with its idempotency key", async () => {
    const key = { idempotencyKey: "a-key" };
    const events = [createEvent(1, trip("A")), { ...createEvent(2, trip("A")), ...key }, { ...createEvent(3), ...key }];
    const { outcomes, together } = await applyTogether(events);
    expect(outcomes).toEqual(["created", "unchanged", "duplicate"]);
    expect(together).toEqual(["1", "2", "3"]);
  });

  test("another partner's booking and key of the same names are others", async () => {
    const event = { ...createEvent(1), idempotencyKey: "a-key" };
    const { together } = await applyTogether([event, { ...event, eventId: createEvent(2).eventId, partner: "other" }]);
    expect(together).toEqual(["1", "1,1"]);
  });
});

test("an event that PostgreSQL can't hold fails alone: the others of its batch are applied", async () => {
  const apply = createApplier();
  const events = createEvents(100);
  events[17] = poison(17);
  events[64] = poison(64);
  const results = await Promise.allSettled(events.map(apply));
  const failed = results.flatMap(({ status }, index) => (status === "rejected" ? [index] : []));
  expect(failed).toEqual([17, 64]);
  expect(results[17]).toMatchObject({ reason: { code: "22P05" } });
  expect((await pool.query("select from bookings")).rowCount).toBe(98);
  // Halving takes two batches for each level, and there are seven levels; a batch for each event would be 100.
  expect(batchSizes.length).toBeLessThanOrEqual(1 + 2 * 2 * 7);
});

test("when the worker stops, a batch that fails is not tried in parts", async () => {
  const stopping = new AbortController();
  const apply = createBatchApplier({
    applyBatch(envelopes) {
      batchSizes.push(envelopes.length);
      stopping.abort(new Error("stopping"));
      return Promise.reject(stopping.signal.reason);
    },
    maxBatchSize: 10,
    maxConcurrentBatches: 1,
    signal: stopping.signal,
  });
  const results = await Promise.allSettled(createEvents(4).map(apply));
  expect(results).toEqual(Array(4).fill({ status: "rejected", reason: stopping.signal.reason }));
  expect(batchSizes).toEqual([4]);
});

test("when the worker stops, events that wait or come fail at once, and a batch that is being applied ends", async () => {
  const stopping = new AbortController();
  const release = Promise.withResolvers<void>();
  const apply = createBatchApplier({
    async applyBatch(envelopes) {
      await release.promise;
      return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
    },
    ...{ maxBatchSize: 1, maxConcurrentBatches: 1, signal: stopping.signal },
  });
  const active = apply(createEvent(1));
  const waiting = apply(createEvent(2));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  const reason = new Error("stopping");
  stopping.abort(reason);
  await expect(waiting).rejects.toBe(reason);
  await expect(apply(createEvent(3))).rejects.toBe(reason);
  release.resolve();
  expect(await active).toBe("created");
});

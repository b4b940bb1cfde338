import { waitFor } from "@booking-events/harness";
import { sampleEvent } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { bookingReferenceOf, type EventEnvelope } from "@booking-events/schema";
import { NotBegun } from "@booking-events/store";
import type { PoolClient } from "pg";
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { applyEvents } from "../apply/apply-events.ts";
import { OutageGate } from "../outages/wait-out-outage.ts";
import { Batches, type BatchLimits, type BatchParts } from "./apply-in-batches.ts";

const { pool } = useTestDatabase();
/** The sizes of all batches, in the order in which they began. */
let batchSizes: number[];

beforeEach(async () => {
  batchSizes = [];
  await pool.query("truncate bookings, booking_events, booking_changes");
});

const never = new AbortController().signal;
const limits: BatchLimits = {
  maxEvents: 200,
  maxCharacters: 1_000_000,
  maxJsonValues: 100_000,
  maxConcurrentBatches: 1,
  // So short that it never delays a batch.
  interval: { lengthMs: 0.001, offsetMs: 0 },
  maxAsideMs: 5_000,
};

/** Applies events in a real transaction, unless the test replaces it. Records the size of each batch. */
function createApplier({
  applyTogether = (envelopes, mode) => applyEvents(pool, envelopes, { duplicateWindowMs: 0, ...mode }),
  recoveredAtMs = () => Number.NEGATIVE_INFINITY,
  signal = never,
  ...more
}: Partial<BatchLimits & BatchParts["transactions"] & { signal: AbortSignal }> = {}) {
  const batches = new Batches({
    transactions: {
      applyTogether(envelopes, mode) {
        batchSizes.push(envelopes.length);
        return applyTogether(envelopes, mode);
      },
      recoveredAtMs,
    },
    limits: { ...limits, ...more },
    metrics: { observeBatch() {} },
    signal,
  });
  return async (envelope: EventEnvelope) => (await batches.applyInBatch(toQueued(envelope))).outcome;
}

function toQueued(envelope: EventEnvelope) {
  return { text: JSON.stringify(envelope), subject: `${envelope.partner} ${bookingReferenceOf(envelope.payload)}` };
}

function createEvent(number: number, fields: object = {}): EventEnvelope {
  return sampleEvent(number, { payload: { consumerTripPartnerExternalReference: `TRIP-${number}`, ...fields } });
}

const createEvents = (count: number) => Array.from({ length: count }, (_, index) => createEvent(index));
const numbersOf = (envelopes: EventEnvelope[]) => envelopes.map(({ eventId }) => Number(eventId.slice(-12)));

async function countTransactions(): Promise<number> {
  const { rows } = await pool.query("select count(distinct xmin::text)::int as count from booking_events");
  return rows[0].count;
}

test("an event that comes alone is applied immediately", async () => {
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

test("events that come while a batch is applied form the next batches, none larger than the limit", async () => {
  const apply = createApplier({ maxEvents: 8 });
  const first = apply(createEvent(0));
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  await Promise.all([first, ...createEvents(21).slice(1).map(apply)]);
  expect(batchSizes).toEqual([1, 8, 8, 4]);
});

describe("with an interval", () => {
  beforeEach(() => vi.useFakeTimers({ toFake: ["performance", "setTimeout"], now: 0 }));
  afterEach(() => void vi.useRealTimers());

  const interval = { lengthMs: 20, offsetMs: 3 };
  const turn = () => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

  test("events that come after a batch began wait for more, until the interval ends", async () => {
    const apply = createApplier({ interval, maxConcurrentBatches: 2 });
    vi.advanceTimersByTime(3);
    const applied = [apply(createEvent(0))];
    await turn();
    vi.advanceTimersByTime(1);
    applied.push(apply(createEvent(1)));
    vi.advanceTimersByTime(18);
    applied.push(apply(createEvent(2)));
    await turn();
    expect(batchSizes).toEqual([1]);
    vi.advanceTimersByTime(1);
    await Promise.all(applied);
    expect(batchSizes).toEqual([1, 2]);
  });

  test("a batch that began late does not delay the one of the next interval", async () => {
    const apply = createApplier({ interval });
    vi.advanceTimersByTime(22);
    await apply(createEvent(0));
    vi.advanceTimersByTime(1);
    await apply(createEvent(1));
    expect(batchSizes).toEqual([1, 1]);
  });

  test("a full batch begins immediately", async () => {
    const apply = createApplier({ interval, maxEvents: 2 });
    await apply(createEvent(3));
    await Promise.all([createEvent(4), createEvent(5)].map(apply));
    expect(batchSizes).toEqual([1, 2]);
  });
});

test("a batch has no more characters and JSON values than allowed, and an event with more is alone", async () => {
  const long = (number: number) => createEvent(number, { note: "x".repeat(4_000) });
  await Promise.all([0, 1, 2, 3].map(long).map(createApplier({ maxCharacters: 9_000 })));
  expect(batchSizes.splice(0)).toEqual([2, 2]);
  const many = (number: number) => createEvent(number, { notes: Array(50).fill(0) });
  await Promise.all([10, 11, 12, 13].map(many).map(createApplier({ maxJsonValues: 110 })));
  expect(batchSizes.splice(0)).toEqual([2, 2]);
  await Promise.all([20, 21, 22].map(many).map(createApplier({ maxJsonValues: 10, maxCharacters: 10 })));
  expect(batchSizes).toEqual([1, 1, 1]);
});

test("an event that can't be read fails alone, and its error holds no value of it", async () => {
  const batches = new Batches({
    transactions: {
      applyTogether: (envelopes) => applyEvents(pool, envelopes, { duplicateWindowMs: 0 }),
      recoveredAtMs: () => Number.NEGATIVE_INFINITY,
    },
    limits,
    metrics: { observeBatch() {} },
    signal: never,
  });
  const bad = ["canary", "{", JSON.stringify({ ...createEvent(1), kind: "canary" })];
  const results = await Promise.allSettled(
    [...bad.map((text) => ({ text, subject: text })), toQueued(createEvent(2))].map((event) =>
      batches.applyInBatch(event),
    ),
  );
  expect(
    results.map((result) => (result.status === "rejected" ? result.reason.message : result.value.outcome)),
  ).toEqual([
    "The envelope must be JSON.",
    "The envelope must be JSON.",
    expect.stringContaining("kind: Must be one of"),
    "created",
  ]);
  expect(JSON.stringify(results)).not.toContain("canary");
});

test("no more batches than allowed are applied concurrently", async () => {
  let [running, most] = [0, 0];
  const apply = createApplier({
    async applyTogether(envelopes) {
      running += 1;
      most = Math.max(most, running);
      const outcomes = await applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
      running -= 1;
      return outcomes;
    },
    maxEvents: 5,
    maxConcurrentBatches: 2,
  });
  await Promise.all(createEvents(50).map(apply));
  expect(most).toBe(2);
});

test("partners take turns: many events of one don't keep those of another out of the next batch", async () => {
  const partnersByBatch: string[][] = [];
  const apply = createApplier({
    applyTogether(envelopes) {
      partnersByBatch.push(envelopes.map(({ partner }) => partner));
      return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
    },
    maxEvents: 4,
  });
  const ofOther = { ...createEvent(20), partner: "other" };
  await Promise.all([...createEvents(12), ofOther].map(apply));
  expect(partnersByBatch[0]).toEqual(["acme", "other", "acme", "acme"]);
});

test("concurrent batches have events of different bookings, in the order in which they came", async () => {
  const trip = (reference: string) => ({ consumerTripPartnerExternalReference: reference });
  const together: string[] = [];
  const running: number[] = [];
  const apply = createApplier({
    async applyTogether(envelopes) {
      const numbers = numbersOf(envelopes);
      running.push(...numbers);
      together.push(running.join());
      const outcomes = await applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
      for (const number of numbers) running.splice(running.indexOf(number), 1);
      return outcomes;
    },
    maxEvents: 1,
    maxConcurrentBatches: 2,
  });
  const events = [
    createEvent(1, trip("A")),
    createEvent(2, { ...trip("A"), note: "second" }),
    createEvent(3, { ...trip("A"), note: "third" }),
    createEvent(4, trip("B")),
  ];
  expect(await Promise.all(events.map(apply))).toEqual(["created", "updated", "updated", "created"]);
  expect(together.slice(0, 2)).toEqual(["1", "1,4"]);
  expect(together.filter((numbers) => /[123],[123]/.test(numbers))).toEqual([]);
});

describe("an event that fails although PostgreSQL takes others", () => {
  beforeEach(() =>
    pool.query(`
      create function fail() returns trigger language plpgsql as
        $$ begin raise exception 'no' using errcode = '57014'; end $$;
      create trigger fail before insert on booking_events
        for each row when (new.reference in ('TRIP-17', 'TRIP-64')) execute function fail()`),
  );
  afterEach(() => pool.query("drop trigger fail on booking_events; drop function fail"));

  test("fails alone, and the others of its batch are applied", async () => {
    const results = await Promise.allSettled(createEvents(100).map(createApplier()));
    const failed = results.flatMap(({ status }, index) => (status === "rejected" ? [index] : []));
    expect(failed).toEqual([17, 64]);
    expect(results[17]).toMatchObject({ reason: { code: "57014" } });
    expect((await pool.query("select from bookings")).rowCount).toBe(98);
    // Halving takes two batches on each of seven levels. One batch per event would be 100.
    expect(batchSizes.length).toBeLessThanOrEqual(2 + 2 * 2 * 7);
  });

  test("makes no other event wait while it is being found", async () => {
    const apply = createApplier();
    const failing = Promise.allSettled(createEvents(100).map(apply));
    await waitFor(() => batchSizes.length >= 3);
    const order: string[] = [];
    await Promise.all([
      failing.then(() => order.push("failing")),
      Promise.all(createEvents(120).slice(100).map(apply)).then(() => order.push("others")),
    ]);
    expect(order).toEqual(["others", "failing"]);
  });
});

test("partners whose events were in a batch with failing ones are applied in the next try", async () => {
  const triedPartners: string[] = [];
  const apply = createApplier({
    applyTogether(envelopes) {
      triedPartners.push([...new Set(envelopes.map(({ partner }) => partner))].join());
      if (envelopes.some(({ partner }) => partner === "acme")) return Promise.reject(new Error("every event fails"));
      return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
    },
  });
  const failing = Promise.allSettled(createEvents(50).map(apply));
  expect(await apply({ ...createEvent(60), partner: "other" })).toBe("created");
  expect(triedPartners.slice(0, 3)).toEqual(["acme,other", "acme", "other"]);
  expect((await failing).every(({ status }) => status === "rejected")).toBe(true);
});

test("events that are not applied in time fail, to be tried again later", async () => {
  const apply = createApplier({ applyTogether: () => Promise.reject(new Error("every event fails")), maxAsideMs: 0 });
  const results = await Promise.allSettled(createEvents(64).map(apply));
  expect(results.map((result) => result.status === "rejected" && result.reason.name)).toEqual(Array(64).fill("HeldUp"));
  // The batch and the group, but no half of the group.
  expect(batchSizes).toEqual([64, 64]);
});

test("an outage takes no time from events that are applied apart", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  onTestFinished(() => void vi.useRealTimers());
  const outageGate = new OutageGate({
    probe: async () => {},
    onChange() {},
    signal: never,
    sleep: async () => void vi.advanceTimersByTime(limits.maxAsideMs + 1),
  });
  let transactions = 0;
  const apply = createApplier({
    applyTogether: (envelopes) =>
      outageGate.throughOutages(() => {
        transactions += 1;
        // The batch and the group have failed. The second half waits for the first one.
        if (transactions === 3) throw new NotBegun();
        if (numbersOf(envelopes).includes(17)) throw new Error("fails");
        return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
      }),
    recoveredAtMs: () => outageGate.recoveredAtMs(),
  });
  const results = await Promise.allSettled(createEvents(64).map(apply));
  expect(results.flatMap((result) => (result.status === "rejected" ? [result.reason.message] : []))).toEqual(["fails"]);
});

test("one transaction waits for many bookings that another worker has locked", async () => {
  const update = (number: number) =>
    createEvent(number + 100, { consumerTripPartnerExternalReference: `TRIP-${number}` });
  await applyEvents(pool, createEvents(50), { duplicateWindowMs: 0 });
  const holder = await pool.connect();
  await holder.query("begin");
  await holder.query("select from bookings for update");
  const outcomes = Promise.all(
    createEvents(50)
      .map((_, number) => update(number))
      .map(createApplier()),
  );
  await waitFor(() => batchSizes.length === 2);
  await holder.query("rollback");
  holder.release();
  expect(new Set(await outcomes)).toEqual(new Set(["unchanged"]));
  expect(batchSizes).toEqual([50, 50]);
});

test("a batch that failed for another reason than its events is applied undivided", async () => {
  let failures = 1;
  const apply = createApplier({
    applyTogether(envelopes) {
      if (failures-- > 0) return Promise.reject(new Error("the connection broke"));
      return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
    },
  });
  expect(await Promise.all(createEvents(10).map(apply))).toEqual(Array(10).fill("created"));
  expect(batchSizes).toEqual([10, 10]);
});

describe("a booking that stays locked", () => {
  let holder: PoolClient;

  beforeEach(async () => {
    await applyEvents(pool, [createEvent(1), createEvent(2)], { duplicateWindowMs: 0 });
    holder = await pool.connect();
    await holder.query("begin");
    await holder.query("select from bookings where reference = 'TRIP-1' for update");
  });
  afterEach(async () => {
    await holder.query("rollback");
    holder.release();
  });

  const update = (number: number, reference: string) =>
    createEvent(number, { consumerTripPartnerExternalReference: reference, note: String(number) });

  test("makes no other booking wait, and its own events fail together, to be tried again later", async () => {
    const apply = createApplier();
    const locked = Promise.allSettled([10, 11, 12].map((number) => update(number, "TRIP-1")).map(apply));
    const others = await Promise.all([20, 21].map((number) => update(number, "TRIP-2")).map(apply));
    expect(others).toEqual(["updated", "updated"]);
    // An event that comes meanwhile fails too.
    const later = Promise.allSettled([apply(update(13, "TRIP-1"))]);
    for (const result of [...(await locked), ...(await later)])
      expect(result).toMatchObject({ status: "rejected", reason: { code: "55P03" } });
    expect(await apply(update(22, "TRIP-2"))).toBe("updated");
  });

  test("gets its events in order when it is free again", async () => {
    const apply = createApplier();
    const updates = Promise.all([10, 11, 12].map((number) => update(number, "TRIP-1")).map(apply));
    await waitFor(() => batchSizes.length === 2);
    await holder.query("rollback");
    expect(await updates).toEqual(["updated", "updated", "updated"]);
    const { rows } = await pool.query("select payload ->> 'note' as note from bookings where reference = 'TRIP-1'");
    expect(rows).toEqual([{ note: "12" }]);
  });
});

test("when the worker stops, a batch that fails is not divided", async () => {
  const stopping = new AbortController();
  const apply = createApplier({
    applyTogether() {
      stopping.abort(new Error("stopping"));
      return Promise.reject(stopping.signal.reason);
    },
    signal: stopping.signal,
  });
  const results = await Promise.allSettled(createEvents(4).map(apply));
  expect(results).toEqual(Array(4).fill({ status: "rejected", reason: stopping.signal.reason }));
  expect(batchSizes).toEqual([4]);
});

test("when the worker stops, waiting and new events fail immediately, and a running batch ends", async () => {
  const stopping = new AbortController();
  const release = Promise.withResolvers<void>();
  const apply = createApplier({
    async applyTogether(envelopes) {
      await release.promise;
      return applyEvents(pool, envelopes, { duplicateWindowMs: 0 });
    },
    maxEvents: 1,
    signal: stopping.signal,
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

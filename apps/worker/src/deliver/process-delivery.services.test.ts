import { waitFor } from "@booking-events/harness";
import { sampleEvent, sampleEventId } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type { Delivery, GivenUpEvent } from "@booking-events/queue";
import { DelayDelivery, digestSubject, LostClaim, ReleaseDelivery } from "@booking-events/queue";
import { createLogger } from "@booking-events/runtime";
import {
  closeLettersOfApplied,
  type DigestKey,
  listDeadLetters,
  markReplayed,
  NotBegun,
  openDigestKey,
  probeWrites,
  readDatabaseIdentity,
  resolveDeadLetter,
} from "@booking-events/store";
import { beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { applyEvents } from "../apply/apply-events.ts";
import { Batches } from "../batches/apply-in-batches.ts";
import { type TransactionParts, Transactions } from "../batches/transactions.ts";
import { OutageGate } from "../outages/wait-out-outage.ts";
import { DeadLetters } from "./dead-letters.ts";
import { processDelivery, type Worker } from "./process-delivery.ts";
import { judgeGivenUp } from "./sweep-given-up.ts";

const never = new AbortController().signal;
const eventId = sampleEventId(1);

const { pool, testPool } = useTestDatabase();
let digestKey: DigestKey;
let database: string;
beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
  database = (await readDatabaseIdentity(pool)).id;
});

beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes, dead_letters"));

function envelope(more: object = {}): unknown {
  const payload = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Canary" };
  return { ...sampleEvent(1, { payload }), ...more };
}

function delivery(data: unknown, more: Partial<Delivery> = {}): Delivery {
  const job = { text: JSON.stringify(data), subject: "a booking", damage: null };
  return { ...job, jobId: eventId, attempt: 1, isLastAttempt: false, isReplay: false, queuedAtMs: 0, ...more };
}

const queue = { readBytes: async ({ text }: { text: string }) => Buffer.from(text) };

type Replaced = Partial<Pick<TransactionParts, "applyEvents" | "outageGate"> & Worker>;

/** The real parts of a worker, unless the test replaces them. */
function createWorker(replaced: Replaced = {}): Worker {
  const { signal = never, logger = createLogger({ name: "test", level: "silent" }) } = replaced;
  const outageGate = replaced.outageGate ?? createGate(signal);
  const metrics = { countProcessed() {}, countFault() {}, countSweepFault() {}, countWarning() {}, observeBatch() {} };
  const transactions = new Transactions({
    pool,
    testPool,
    outageGate,
    applyEvents: replaced.applyEvents ?? applyEvents,
    digestKey: () => digestKey,
    database: () => database,
    duplicateWindowMs: 0,
    metrics,
    tracing: undefined,
    logger,
  });
  const limits = {
    maxEvents: 1,
    maxCharacters: 1,
    maxJsonValues: 1,
    maxConcurrentBatches: 1,
    interval: { lengthMs: 1, offsetMs: 0 },
    maxAsideMs: 5_000,
  };
  return {
    batches: new Batches({ transactions, limits, metrics, signal }),
    transactions,
    deadLetters: new DeadLetters({ pool, testPool, outageGate, digestKey: () => digestKey, database: () => database }),
    metrics,
    laterVersions: { note() {} },
    logger,
    signal,
    ...replaced,
  };
}

/** Metrics that note the outcomes and codes that are counted. */
function countInto(counted: string[]): Worker["metrics"] {
  return {
    countProcessed: ({ outcome }) => void counted.push(outcome),
    countFault: (code) => void counted.push(code),
    countSweepFault() {},
  };
}

function createGate(signal: AbortSignal, probe = () => probeWrites(pool)): OutageGate {
  return new OutageGate({ probe, onChange() {}, signal });
}

const process = (event: Delivery, replaced?: Replaced) => processDelivery(event, queue, createWorker(replaced));
const failWith = (error: Error) => () => Promise.reject(error);
/** PostgreSQL says that it can't hold the content. */
const refuseContent = () => pool.query("select $1::date", ["canary"]) as never;

async function readDeadLetters() {
  const { rows } = await pool.query("select * from dead_letters order by event_id");
  return rows;
}

test("a valid event is applied", async () => {
  await process(delivery(envelope()));
  const { rows } = await pool.query("select partner, reference, state from bookings");
  expect(rows).toEqual([{ partner: "acme", reference: "TRIP-1", state: "active" }]);
});

test("an event that is older than the log is logged as a warning that says what to do, without its content", async () => {
  const logged: unknown[] = [];
  const logger = createLogger({ name: "test", level: "info" }, { write: (line) => logged.push(JSON.parse(line)) });
  await pool.query("update log_retention set horizon = now()");
  onTestFinished(async () => void (await pool.query("update log_retention set horizon = null")));
  await process(delivery(envelope()), { logger });
  expect(logged).toMatchObject([
    { level: "warn", eventId, partner: "acme", outcome: "expired", msg: expect.stringContaining("docs/runbook.md") },
  ]);
  expect(JSON.stringify(logged)).not.toMatch(/Canary|TRIP-1/);
});

describe("an immediate dead letter", () => {
  test.each([
    ["no version", envelope({ version: undefined }), /version/],
    ["an unknown kind", envelope({ kind: "cancel" }), /kind/],
    ["no JSON object", "text", /envelope/],
    ["no reference", envelope({ payload: { consumerPhone: "42" } }), /consumerTripPartnerExternalReference/],
    [
      "what PostgreSQL can't hold",
      envelope({ payload: { consumerTripPartnerExternalReference: "T", x: "\u0000" } }),
      /x/,
    ],
    [
      "a name that PostgreSQL can't hold",
      envelope({ payload: { consumerTripPartnerExternalReference: "T", "\u0000\ud800": 1 } }),
      /u0000/,
    ],
  ])("for an envelope with %s keeps what was queued", async (_, data, message) => {
    await process(delivery(data));
    const letters = await readDeadLetters();
    expect(letters).toMatchObject([
      { event_id: eventId, error_code: "INVALID_ENVELOPE", attempts: 1, resolved_at: null },
    ]);
    expect(letters[0].error).toMatch(message);
    expect(JSON.parse(letters[0].envelope)).toEqual(data);
  });

  test("for data that is not JSON keeps it byte for byte", async () => {
    const bytes = Buffer.from([0x7b, 0xff, 0xc3, 0x28]);
    const queue = { readBytes: async () => bytes };
    await processDelivery({ ...delivery(null), text: bytes.toString() }, queue, createWorker());
    const [letter] = await readDeadLetters();
    expect(letter).toMatchObject({ error_code: "INVALID_ENVELOPE", error: expect.stringContaining("must be JSON") });
    expect(letter.envelope).toEqual(bytes);
  });

  test("for an event that PostgreSQL refuses names its partner, kind and reference", async () => {
    await process(delivery(envelope()), { applyEvents: refuseContent });
    expect(await readDeadLetters()).toMatchObject([
      { event_id: eventId, partner: "acme", kind: "create", reference: "TRIP-1", error_code: "22007", attempts: 1 },
    ]);
  });

  test.each([
    ["trip", { consumerTripPartnerExternalReference: "R", consumerPartnerExternalReference: "C" }],
    ["consumer", { consumerPartnerExternalReference: "R" }],
  ])("says whether its reference is of a trip or of a consumer: %s", async (kind, payload) => {
    await process(delivery(envelope({ payload })), { applyEvents: refuseContent });
    expect(await readDeadLetters()).toMatchObject([{ reference: "R", reference_kind: kind }]);
  });

  test("is written once, however often the event is delivered", async () => {
    await process(delivery("text"));
    await process(delivery("text"));
    expect(await readDeadLetters()).toHaveLength(1);
  });

  test("has an id of its own for a job that no ingest has queued", async () => {
    await process(delivery("text", { jobId: "7" }));
    await process(delivery("text", { jobId: "7" }));
    await process(delivery("text", { jobId: "8" }));
    expect(await readDeadLetters()).toHaveLength(2);
  });
});

test("an event that an earlier release accepted is applied, even if this one would refuse it", async () => {
  const payload = {
    consumerTripPartnerExternalReference: "x".repeat(300),
    consumerPhone: 42,
    consumerTripBookingDate: "2026-06-14",
  };
  await process(delivery(envelope({ payload })));
  expect((await pool.query("select payload from bookings")).rows).toEqual([{ payload }]);
  expect(await readDeadLetters()).toEqual([]);
});

test("an event of a later version waits for a worker that knows it, loses no attempt, and is reported", async () => {
  const reported: string[] = [];
  const counted: string[] = [];
  const processed = process(delivery(envelope({ version: 2 }), { isLastAttempt: true }), {
    laterVersions: { note: (id) => void reported.push(id) },
    metrics: countInto(counted),
  });
  await expect(processed).rejects.toThrow(DelayDelivery);
  expect([reported, counted]).toEqual([[eventId], ["later-version"]]);
  expect(await readDeadLetters()).toEqual([]);
});

describe("an attempt that fails by a bug", () => {
  const failing = { applyEvents: failWith(new TypeError("cannot read Canary")) };

  test("is repeated, and its error holds nothing of the content", async () => {
    const failure = process(delivery(envelope()), failing);
    await expect(failure).rejects.toThrow("TypeError: The worker failed to apply the event (TypeError).");
    expect(await readDeadLetters()).toEqual([]);
  });

  test("leaves a dead letter if it was the last", async () => {
    await process(delivery(envelope(), { attempt: 15, isLastAttempt: true }), failing);
    const letters = await readDeadLetters();
    expect(letters).toMatchObject([{ event_id: eventId, error_code: "TypeError", attempts: 15 }]);
    expect(letters[0].error).not.toContain("Canary");
  });
});

describe("an event that an operator puts back into the queue", () => {
  const failing = { applyEvents: failWith(new TypeError("a bug that a new release has fixed")) };
  const last = { attempt: 15, isLastAttempt: true };

  test("is applied, and its dead letter is closed with the outcome", async () => {
    await process(delivery(envelope(), last), failing);
    expect(await markReplayed(pool, eventId, "olga")).toBe(true);
    await process(delivery(envelope(), { isReplay: true }));
    expect(await readDeadLetters()).toMatchObject([
      { event_id: eventId, replayed_by: "olga", resolved_by: "worker", resolution: "replayed: created" },
    ]);
    expect(await listDeadLetters(pool, { limit: 10 })).toEqual([]);
    expect(await markReplayed(pool, eventId, "olga")).toBe(false);
  });

  test("is, if a test partner has sent it, a dead letter apart from all others, and neither counts with them", async () => {
    const ofTest = envelope({ test: true });
    const counted: unknown[] = [];
    const metrics = { ...countInto([]), countProcessed: (one: unknown) => void counted.push(one) };
    await process(delivery(ofTest, last), { ...failing, metrics });
    expect(await readDeadLetters()).toEqual([]);
    expect(await markReplayed(testPool, eventId, "olga")).toBe(true);
    await process(delivery(ofTest, { isReplay: true }), { metrics });
    const { rows } = await testPool.query("select resolution from dead_letters");
    expect(rows).toEqual([{ resolution: "replayed: created" }]);
    expect((await pool.query("select from booking_events")).rowCount).toBe(0);
    expect(counted).toMatchObject([
      { outcome: "dead", isTest: true },
      { outcome: "created", isTest: true },
    ]);
  });

  test("that can't be read is a dead letter apart from all others as well, if a test partner has sent it", async () => {
    await testPool.query("truncate dead_letters");
    const subject = digestSubject({
      partner: "acme",
      payload: { consumerTripPartnerExternalReference: "T" },
      test: true,
    });
    await process(delivery("cut off", { subject, jobId: sampleEventId(2) }));
    expect(await readDeadLetters()).toEqual([]);
    expect((await testPool.query("select error_code from dead_letters")).rows).toEqual([
      { error_code: "INVALID_ENVELOPE" },
    ]);
    for (const other of ["acme 0123456789abcdef", "job: a 0123456789abcdef test", "a booking"])
      await process(delivery("cut off", { subject: other, jobId: other }));
    expect(await readDeadLetters()).toHaveLength(3);
  });

  test("and that was applied meanwhile changes nothing, and its dead letter is closed", async () => {
    await process(delivery(envelope(), last), failing);
    await process(delivery(envelope()));
    await markReplayed(pool, eventId, "olga");
    await process(delivery(envelope(), { isReplay: true }));
    expect(await readDeadLetters()).toMatchObject([{ resolution: "replayed: created" }]);
    expect((await pool.query("select * from booking_changes")).rowCount).toBe(1);
  });

  test("and whose dead letter was discarded meanwhile is not applied", async () => {
    await process(delivery(envelope(), last), failing);
    await markReplayed(pool, eventId, "olga");
    await resolveDeadLetter(pool, { eventId, resolvedBy: "olga", resolution: "discarded: sent again" });
    await process(delivery(envelope(), { isReplay: true }));
    expect(await readDeadLetters()).toMatchObject([{ resolution: "discarded: sent again" }]);
    expect((await pool.query("select 1 from booking_events")).rowCount).toBe(0);
  });

  test("and that fails again still has one dead letter, which counts all attempts", async () => {
    await process(delivery(envelope(), last), failing);
    await markReplayed(pool, eventId, "olga");
    await process(delivery(envelope(), { ...last, isReplay: true }), failing);
    expect(await readDeadLetters()).toMatchObject([{ attempts: 30, resolved_at: null }]);
  });
});

describe("a hundred events that need their dead letters at once", () => {
  const events = Array.from({ length: 100 }, (_, index) => sampleEvent(index));

  /** @returns how many connections were in use or waited for at once, at most */
  async function countConnections(work: (outageGate: OutageGate) => Promise<unknown>): Promise<number> {
    const outages: unknown[] = [];
    let most = 0;
    const connect = pool.connect.bind(pool);
    const counting = vi.spyOn(pool, "connect").mockImplementation((() => {
      const connecting = connect();
      most = Math.max(most, pool.totalCount - pool.idleCount + pool.waitingCount);
      return connecting;
    }) as typeof pool.connect);
    onTestFinished(() => counting.mockRestore());
    const onChange = (outage: unknown) => outages.push(outage);
    await work(new OutageGate({ probe: () => probeWrites(pool), onChange, signal: never }));
    expect(outages).toEqual([]);
    return most;
  }

  test("because they are replayed leave connections to the batches", async () => {
    await pool.query(
      `insert into dead_letters (event_id, error_code, error, attempts, envelope, replayed_at)
       select id, '22012', '', 1, '', clock_timestamp() from unnest($1::uuid[]) as id`,
      [events.map(({ eventId }) => eventId)],
    );
    const batches: Worker["batches"] = {
      applyInBatch: async ({ text }) => ({ ...JSON.parse(text), outcome: "created" }),
    };
    const most = await countConnections((outageGate) => {
      const worker = createWorker({ outageGate, batches });
      const deliveries = events.map((event) => delivery(event, { jobId: event.eventId, isReplay: true }));
      return Promise.all(deliveries.map((event) => processDelivery(event, queue, worker)));
    });
    expect(most).toBeLessThanOrEqual(2);
    const { rows } = await pool.query("select resolution, count(*)::int from dead_letters group by resolution");
    expect(rows).toEqual([{ resolution: "replayed: created", count: 100 }]);
  });

  test("because they can't be read leave connections to the batches", async () => {
    const most = await countConnections((outageGate) => {
      const worker = createWorker({ outageGate });
      const deliveries = events.map(({ eventId }) => delivery("text", { jobId: eventId }));
      return Promise.all(deliveries.map((event) => processDelivery(event, queue, worker)));
    });
    expect(most).toBeLessThanOrEqual(2);
    expect(await readDeadLetters()).toHaveLength(100);
  });
});

describe("an event that the queue has given up", () => {
  const stalled = "job stalled more than allowable limit";

  function judge(more: Partial<GivenUpEvent> = {}, replaced: Replaced = {}) {
    const event = { delivery: delivery(envelope()), reason: stalled, deaths: 0, runTrial: inTrial, ...more };
    return judgeGivenUp(event, queue, createWorker(replaced));
  }
  let runningTrials = 0;
  const inTrial: GivenUpEvent["runTrial"] = async (work) => {
    runningTrials += 1;
    return await work().finally(() => {
      runningTrials -= 1;
    });
  };

  test("because its workers seemed to die is tried alone, and applied", async () => {
    expect(await judge()).toBe("take out");
    expect((await pool.query("select outcome from booking_events")).rows).toEqual([{ outcome: "created" }]);
    expect(await readDeadLetters()).toEqual([]);
  });

  test("and that fails in the trial goes back into the queue, with its attempts", async () => {
    expect(await judge({}, { applyEvents: failWith(new TypeError("a bug")) })).toBe("put back");
    expect(await readDeadLetters()).toEqual([]);
  });

  test("and that another process may have taken over is left to it, even on the last attempt", async () => {
    const event = { delivery: delivery(envelope(), { isLastAttempt: true }) };
    const runTrial = () => Promise.reject(new LostClaim());
    await expect(judge({ ...event, runTrial })).rejects.toThrow(LostClaim);
    expect(await readDeadLetters()).toEqual([]);
  });

  test("becomes one dead letter if workers have died of trying it alone", async () => {
    const applyEvents = failWith(new Error("must not be tried again"));
    for (let times = 0; times < 2; times += 1) expect(await judge({ deaths: 3 }, { applyEvents })).toBe("take out");
    expect(await readDeadLetters()).toMatchObject([{ event_id: eventId, partner: "acme", error_code: "STALLED" }]);
  });

  test("for another reason becomes a dead letter", async () => {
    expect(await judge({ reason: "Missing lock" })).toBe("take out");
    expect(await readDeadLetters()).toMatchObject([{ error_code: "GIVEN_UP" }]);
  });

  test.each([
    ["because its workers died of it", { deaths: 3 }],
    ["for another reason", { reason: "Missing lock" }],
    ["because its job is damaged", { delivery: delivery(envelope(), { damage: "The queued job has no name." }) }],
  ])("%s, and that another delivery applied, is only taken out", async (_, event) => {
    await process(delivery(envelope()));
    expect(await judge(event)).toBe("take out");
    expect(await readDeadLetters()).toEqual([]);
  });

  test("is not in a trial while it waits for PostgreSQL", async () => {
    let isOut = true;
    const failIfOut = () => (isOut ? Promise.reject(new NotBegun()) : Promise.resolve());
    const outageGate = createGate(never, failIfOut);
    const judged = judge({}, { outageGate, applyEvents: (...args) => failIfOut().then(() => applyEvents(...args)) });
    await waitFor(() => expect(outageGate.currentOutage()).not.toBeNull());
    expect(runningTrials).toBe(0);
    isOut = false;
    expect(await judged).toBe("take out");
  });
});

describe("no event is both in the log and among the dead letters", () => {
  test("if a delivery fails after another one was applied", async () => {
    await process(delivery(envelope()));
    const failing = { applyEvents: failWith(new TypeError("a bug")) };
    await process(delivery(envelope(), { isLastAttempt: true }), failing);
    expect(await readDeadLetters()).toEqual([]);
  });

  test("if a replay fails after another delivery was applied: its letter is closed", async () => {
    const failing = { applyEvents: failWith(new TypeError("a bug")) };
    await process(delivery(envelope(), { isLastAttempt: true }), failing);
    await markReplayed(pool, eventId, "olga");
    await process(delivery(envelope()));
    await process(delivery(envelope(), { isLastAttempt: true, isReplay: true }), failing);
    expect(await readDeadLetters()).toMatchObject([{ resolution: "applied meanwhile: created" }]);
  });

  test("after the next sweep, if a delivery fails while another one is applied", async () => {
    const failing = { applyEvents: failWith(new TypeError("a bug")) };
    await process(delivery(envelope(), { isLastAttempt: true }), failing);
    await process(delivery(envelope()));
    expect(await closeLettersOfApplied(pool)).toBe(1);
    expect(await readDeadLetters()).toMatchObject([
      { resolved_by: "worker", resolution: "applied meanwhile: created" },
    ]);
    expect(await closeLettersOfApplied(pool)).toBe(0);
  });

  test("after the next sweep, if it is replayed while its failed delivery is retried and applied", async () => {
    const failing = { applyEvents: failWith(new TypeError("a bug")) };
    await process(delivery(envelope(), { isLastAttempt: true }), failing);
    await markReplayed(pool, eventId, "olga");
    // The queue still has the event, so the replay adds nothing.
    await process(delivery(envelope()));
    // The replay itself may be about to close the letter.
    expect(await closeLettersOfApplied(pool)).toBe(0);
    await pool.query(
      "update dead_letters set failed_at = now() - interval '9 days', replayed_at = now() - interval '2 min'",
    );
    expect(await closeLettersOfApplied(pool)).toBe(1);
    expect(await readDeadLetters()).toMatchObject([{ resolution: "applied meanwhile: created" }]);
  });
});

test("an event whose job is damaged becomes a dead letter with its bytes, even if its text can be read", async () => {
  await process(delivery(envelope(), { damage: "The queued job's opts are not a JSON object." }));
  const [letter] = await readDeadLetters();
  expect(letter).toMatchObject({ event_id: eventId, partner: "acme", error_code: "INVALID_ENVELOPE" });
  expect(letter.error).toContain("opts are not a JSON object");
  expect(JSON.parse(letter.envelope)).toEqual(envelope());
});

test("an event that waits for the database goes back to the queue when the worker stops", async () => {
  const stopping = new AbortController();
  const { signal } = stopping;
  const outageGate = createGate(signal, failWith(new NotBegun()));
  const waiting = process(delivery(envelope(), { isLastAttempt: true }), {
    outageGate,
    applyEvents: failWith(new NotBegun()),
    signal,
  });
  await waitFor(() => expect(outageGate.currentOutage()).not.toBeNull());
  stopping.abort(new ReleaseDelivery("stopping"));
  await expect(waiting).rejects.toThrow(ReleaseDelivery);
  expect(await readDeadLetters()).toEqual([]);
});

describe("a violated constraint", () => {
  const eventIds = Array.from({ length: 30 }, (_, index) => sampleEventId(10 + index));

  test("loses no event: if the feed's position is behind its rows, all wait until it is fixed", async () => {
    const outageGate = createGate(never);
    const worker = createWorker({ outageGate });
    const deliver = (id: string) => {
      const payload = { consumerTripPartnerExternalReference: id };
      return processDelivery(delivery(envelope({ eventId: id, payload }), { isLastAttempt: true }), queue, worker);
    };
    for (const id of eventIds.slice(0, 12)) await deliver(id);
    const { rows } = await pool.query<{ first: number; last: number }>(
      "select min(id) as first, max(id) as last from booking_changes",
    );
    const setPosition = (lastId = 0) => pool.query("update feed_position set last_id = $1", [lastId]);
    // As after restoring one of the tables.
    await setPosition((rows[0]?.first ?? 0) - 1);
    const delivered = Promise.all(eventIds.slice(12).map(deliver));
    await waitFor(() => expect(outageGate.currentOutage()?.code).toBe("23505"));
    await setPosition(rows[0]?.last);
    await delivered;
    expect((await pool.query("select 1 from booking_events")).rowCount).toBe(30);
    expect(await readDeadLetters()).toEqual([]);
  });

  test("of some events only uses up an attempt, is logged as an error, and is counted by its code", async () => {
    const logged: unknown[] = [];
    const counted: string[] = [];
    const applyEvents = () => pool.query("insert into dead_letters (event_id) values (null)") as never;
    const logger = createLogger({ name: "test", level: "warn" }, { write: (line) => logged.push(JSON.parse(line)) });
    const failure = process(delivery(envelope()), { applyEvents, logger, metrics: countInto(counted) });
    await expect(failure).rejects.toThrow("23502");
    expect(logged).toMatchObject([{ level: "error", code: "23502", attempt: 1, msg: "attempt failed" }]);
    expect(counted).toEqual(["attempt-failed", "23502"]);
    expect(await readDeadLetters()).toEqual([]);
  });
});

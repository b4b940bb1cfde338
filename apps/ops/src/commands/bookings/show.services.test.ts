import { randomUUID } from "node:crypto";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { changeQueue, createConsumer, createProducer, type Producer } from "@booking-events/queue";
import {
  bookingKey,
  insertBookings,
  insertEvents,
  markReplayed,
  readDatabaseIdentity,
  resolveDeadLetter,
  writeDeadLetter,
} from "@booking-events/store";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runOps } from "../../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
let environment: Record<string, string>;
let producer: Producer;
const cleanups: (() => Promise<void>)[] = [];

beforeEach(async () => {
  await pool.query("truncate dead_letters, booking_events, bookings");
  environment = { DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };
  producer = createProducer({ ...queue(), onError: () => {} });
  cleanups.push(() => producer.close());
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
});

afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
});

const queue = () => ({ redisServers: redisUrl(), prefix: environment["QUEUE_PREFIX"] ?? "" });
const eventId = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;
const start = Date.UTC(2026, 10, 20) * 1_000;
const sequenceOf = (number: number) => start + number * 1_000_000;

function show(...args: string[]) {
  return runOps(["bookings", "show", "acme", "TRIP-1", ...args], { environment });
}

async function showJson(...args: string[]) {
  const { exitCode, stdout, stderr } = await show("--json", ...args);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  return JSON.parse(stdout);
}

function envelope(number: number, reference = "TRIP-1", name = "consumerTripPartnerExternalReference") {
  return {
    ...{ eventId: eventId(number), kind: "update" as const, partner: "acme", sequence: sequenceOf(number) },
    ...{ receivedAt: new Date(sequenceOf(number) / 1_000).toISOString(), idempotencyKey: null },
    payload: { [name]: reference, consumerGivenName: "Canary" },
  };
}

function enqueue(...envelopes: ReturnType<typeof envelope>[]) {
  return producer.enqueueNumbered(envelopes);
}

async function insertLetter(number: number, more: { referenceKind?: "trip" | "consumer" } = {}) {
  await writeDeadLetter(pool, {
    ...{ eventId: eventId(number), partner: "acme", kind: "create", referenceKind: "trip", reference: "TRIP-1" },
    ...{ sequence: sequenceOf(number), errorCode: "22003", attempts: 1, envelope: Buffer.from("{}") },
    error: "PostgreSQL can't hold what the event contains (SQLSTATE 22003, table bookings, column payload).",
    ...more,
  });
}

async function insertApplied(number: number) {
  const booking = { bookingKey: bookingKey("acme", "trip", "TRIP-1"), partner: "acme", reference: "TRIP-1" };
  const receivedAt = new Date(sequenceOf(number) / 1_000);
  await insertEvents(pool, [
    {
      ...{ ...booking, id: eventId(number), kind: "create", referenceKind: "trip", sequence: sequenceOf(number) },
      ...{ idempotencyKey: null, payload: "{}", contentDigest: "00".repeat(32), outcome: "created", duplicateOf: null },
      ...{ warnings: [], after: null, receivedAt },
    },
  ]);
  await insertBookings(pool, [
    {
      ...{ ...booking, bookingId: randomUUID(), referenceKind: "trip", revision: 1, newContent: null },
      state: {
        ...{ state: "active", eventId: eventId(number), sequence: sequenceOf(number), content: null },
        ...{ lastSequence: sequenceOf(number), createdAt: receivedAt, updatedAt: receivedAt, deletedAt: null },
      },
    },
  ]);
}

/** Holds, fails or keeps waiting each event, as a worker. */
async function work(deeds: Record<string, "hold" | "fail">) {
  const seen = new Set<string>();
  const consumer = createConsumer({
    ...{ ...queue(), concurrency: 10, maxHeldBytes: 1e6, onError: () => {} },
    async handle({ jobId }) {
      seen.add(jobId);
      if (deeds[jobId] === "fail") throw new Error("23514: PostgreSQL refused to apply the event (table bookings).");
      await new Promise(() => {});
    },
  });
  cleanups.push(() => consumer.close());
  consumer.start((await readDatabaseIdentity(pool)).id);
  await waitFor(() => expect([...seen].sort()).toEqual(Object.keys(deeds).sort()));
}

test("one list tells where each event of a booking is, in order, and why", async () => {
  await insertApplied(2);
  await insertLetter(1);
  await enqueue(envelope(3), envelope(4), envelope(3, "OTHER"));
  await enqueue(envelope(6, "TRIP-2"));
  await work({ [eventId(3)]: "fail", [eventId(4)]: "hold", [eventId(6)]: "hold" });
  await waitFor(async () => expect(JSON.stringify(await showJson())).toContain("Attempt 2 of 15"));
  // Its lock on the held event stays for some seconds.
  await Promise.all(cleanups.splice(1).map((cleanup) => cleanup()));
  await enqueue(envelope(5));

  const { events, queue: looked, state } = await showJson();
  expect(state).toBe("active");
  expect(looked).toEqual({ total: 4, looked: 4, problem: null });
  const told = events.map(({ id, status, outcome, why }: Record<string, string>) => [id, status, outcome, why]);
  expect(told).toEqual([
    [
      eventId(1),
      "dead",
      null,
      expect.stringMatching(/^1 attempt failed, 22003: .*table bookings, column payload.* Replay/),
    ],
    [eventId(2), "applied", "created", "There was no booking."],
    [
      eventId(3),
      "delayed",
      null,
      expect.stringMatching(/^Attempt 2 of 15 is at \S+Z\. The last attempt failed: 23514: /),
    ],
    [eventId(4), "held", null, expect.stringMatching(/^A worker has had it since \S+Z\.$/)],
    [eventId(5), "waiting", null, "It waits for a worker."],
  ]);
  const { stdout: stuck } = await runOps(["bookings", "stuck", "--partner", "acme", "--json"], { environment });
  const { events: listed, total } = JSON.parse(stuck);
  expect([total, listed.map(({ id, reference, status }: Record<string, string>) => [id, reference, status])]).toEqual([
    4,
    [
      [eventId(1), "TRIP-1", "dead"],
      [eventId(3), "TRIP-1", "delayed"],
      [eventId(4), "TRIP-1", "held"],
      [eventId(5), "TRIP-1", "waiting"],
      [eventId(6), "TRIP-2", "held"],
    ],
  ]);
  expect(listed[1]).toMatchObject({ partner: "acme", failedAttempts: 1, nextAttemptAt: expect.stringMatching(/Z$/) });
  expect(listed[1].why).toMatch(/^Attempt 2 of 15 is at .* The last attempt failed: 23514: /);
  const limited = await runOps(["bookings", "stuck", "--limit", "2"], { environment });
  expect(limited.stdout).toContain(eventId(3));
  expect(limited.stdout).not.toContain(eventId(4));
  const ofOther = await runOps(["bookings", "stuck", "--partner", "acm"], { environment });
  expect(ofOther.stdout).toBe("No event waits, and there are no open dead letters.\n");

  const { stdout } = await show();
  expect(stdout).toContain("3 found among 4 events");
  const narrow = await runOps(["bookings", "show", "acme", "TRIP-1"], { environment, columns: 80 });
  expect(Math.max(...narrow.stdout.split("\n").map((text) => text.length))).toBeLessThanOrEqual(80);
  expect(narrow.stdout).toMatch(new RegExp(`^EVENT ID +${eventId(5)}$`, "m"));
  expect(narrow.stdout).toMatch(/^WHY +It waits for a worker\.$/m);
  expect(stdout).not.toContain("Canary");
});

test("a booking whose only event is a dead letter, or waits, has a story too", async () => {
  await insertLetter(1);
  const dead = await show();
  expect(dead).toMatchObject({ exitCode: 0, stderr: "" });
  expect(dead.stdout).toMatch(/^Booking TRIP-1 of acme: nothing was applied yet\n/);
  expect(dead.stdout).toContain("22003: PostgreSQL can't hold");
  await pool.query("truncate dead_letters");
  await enqueue(envelope(2));
  expect(await showJson()).toMatchObject({ state: null, referenceKind: "trip", events: [{ status: "waiting" }] });
  await changeQueue({ ...queue(), shardCount: 1 }, { isPaused: true });
  const why = "The queue is paused. To resume it: ops queue resume.";
  expect((await showJson()).events).toMatchObject([{ status: "waiting", why }]);
  const stuck = await runOps(["bookings", "stuck"], { environment });
  expect(stuck).toMatchObject({ stdout: expect.stringContaining(why), stderr: "" });
});

test("a letter tells what became of it: replayed and waiting, replayed and applied, or discarded", async () => {
  await insertLetter(1);
  const text = JSON.stringify({ version: 1, ...envelope(1) });
  await producer.requeue({ eventId: eventId(1), text, envelope: envelope(1) });
  expect((await showJson()).events).toMatchObject([
    { status: "waiting", why: "It waits for a worker. It was replayed, and had been a dead letter (22003)." },
  ]);
  await insertApplied(1);
  expect((await showJson()).events).toMatchObject([
    { status: "applied", why: "There was no booking. It had been a dead letter (22003)." },
  ]);
  await insertLetter(3);
  await resolveDeadLetter(pool, { eventId: eventId(3), resolvedBy: "Ada", resolution: "discarded: sent again" });
  expect((await showJson()).events[1]).toMatchObject({
    ...{ status: "dead", why: expect.stringMatching(/Closed: discarded: sent again\.$/) },
  });
});

test("a trip and a consumer with the same reference are told apart in the queue and among dead letters", async () => {
  await enqueue(envelope(1), envelope(2, "TRIP-1", "consumerPartnerExternalReference"));
  await insertLetter(3, { referenceKind: "consumer" });
  expect(await show()).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("--reference-kind trip") });
  expect((await showJson("--reference-kind", "trip")).events).toMatchObject([{ id: eventId(1) }]);
  expect((await showJson("--reference-kind", "consumer")).events).toMatchObject([
    { id: eventId(2) },
    { id: eventId(3) },
  ]);
});

test("without Redis, the rest is shown, and what was not seen is said", async () => {
  await insertLetter(1);
  await markReplayed(pool, eventId(1), "Ada");
  environment["REDIS_URL"] = "redis://127.0.0.1:1";
  const { exitCode, stdout, stderr } = await show();
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toContain("not looked at: Redis does not answer");
  expect(stdout).toContain("It was replayed, and has no result yet.");
  await pool.query("truncate dead_letters");
  expect(await show()).toMatchObject({
    ...{
      exitCode: 1,
      stderr: expect.stringMatching(/has no booking TRIP-1\. Events in the queue were not looked at: /),
    },
  });
});

import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createProducer } from "@booking-events/queue";
import { createMetrics } from "@booking-events/runtime";
import type { EventEnvelope } from "@booking-events/schema";
import { writeDeadLetter } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { identifyEvent } from "@booking-events/worker/deliver/identify-event";
import { ArrivalsWatch } from "@booking-events/worker/watch/watch-arrivals";
import { afterAll, beforeEach, expect, test } from "vitest";

const { pool, url } = useTestDatabase();
const queue = { redisServers: redisUrl(), prefix: uniquePrefix(), shardCount: 1 };
const environment = { DATABASE_URL: url, REDIS_URL: queue.redisServers, QUEUE_PREFIX: queue.prefix };
const producer = createProducer({ ...queue, onError: () => {} });

beforeEach(() => pool.query("truncate bookings, booking_events, booking_changes, dead_letters"));
afterAll(() => producer.close());

const now = new Date();
const startMs = now.getTime() - 3_600_000;
const dayIn = (days: number) => new Date(now.getTime() + days * 86_400_000).toISOString().slice(0, 10);
const tomorrow = dayIn(1);

/** Events are numbered in the order of receipt, in milliseconds. */
function event(number: number, reference: string, arrival: string | null, more: object = {}): EventEnvelope {
  const time = (startMs + number).toString(16).padStart(12, "0");
  return {
    ...{ version: 1, eventId: `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`, kind: "update" },
    ...{ partner: "acme", sequence: (startMs + number) * 1_000, idempotencyKey: null, secretId: "s1" },
    receivedAt: new Date(startMs + number).toISOString(),
    payload: {
      consumerTripPartnerExternalReference: reference,
      ...(arrival === null ? {} : { consumerTripArrivalDate: arrival }),
      ...more,
    },
  } as EventEnvelope;
}

const apply = (...events: EventEnvelope[]) => applyEvents(pool, events, { duplicateWindowMs: 72 * 3_600_000 });

async function letDie(envelope: EventEnvelope): Promise<void> {
  const text = JSON.stringify(envelope);
  const { traceparent: _, ...identity } = identifyEvent({ text, jobId: envelope.eventId } as never);
  const failure = { errorCode: "22003", error: "It failed.", attempts: 1 };
  await writeDeadLetter(pool, { ...identity, ...failure, envelope: Buffer.from(text) });
}

async function arrivals(...args: string[]) {
  const ran = await runOps(["arrivals", "--json", ...args], { environment, now });
  expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
  return JSON.parse(ran.stdout);
}

const referencesOf = ({ guests }: { guests: { reference: string; isUnresolved: boolean }[] }) => ({
  unresolved: guests
    .filter((guest) => guest.isUnresolved)
    .map(({ reference }) => reference)
    .sort(),
  others: guests
    .filter((guest) => !guest.isUnresolved)
    .map(({ reference }) => reference)
    .sort(),
});

test("guests who arrive are listed, by day in every time zone, or by the moment", async () => {
  await apply(
    ...[event(1, "TODAY", dayIn(0)), event(2, "TOMORROW", tomorrow), event(3, "LATER", dayIn(9))],
    ...[event(4, "PAST", dayIn(-3)), event(5, "NO DAY", null)],
    event(6, "AN HOUR AGO", new Date(now.getTime() - 3_600_000).toISOString()),
    event(7, "IN AN HOUR", new Date(now.getTime() + 3_600_000).toISOString()),
    event(8, "DELETED", tomorrow),
  );
  await apply({ ...event(9, "DELETED", null), kind: "delete" });
  const found = await arrivals();
  expect(referencesOf(found)).toEqual({ unresolved: [], others: ["IN AN HOUR", "TODAY", "TOMORROW"] });
  expect(found.counts).toEqual({ arriving: 3, unresolved: 0, dead: 0, waiting: 0, unreadable: 0 });
  expect(found.guests.find(({ reference }: { reference: string }) => reference === "TOMORROW")).toMatchObject({
    ...{ arrivalDay: tomorrow, arrivalAt: null, isApplied: true, letters: [], waiting: [], unreadable: [] },
    lastWordAt: new Date(startMs + 2).toISOString(),
  });
  expect(referencesOf(await arrivals("--within", "30d")).others).toContain("LATER");
  expect((await arrivals("--limit", "1")).isCut).toBe(true);
});

test("a dead letter counts if it is newer than what was applied, also if nothing of the booking was", async () => {
  await apply(event(1, "CHANGED", tomorrow), event(2, "SETTLED", tomorrow), event(3, "MOVED", dayIn(30)));
  await letDie(event(11, "CHANGED", dayIn(30)));
  await letDie({ ...event(12, "CHANGED", null), kind: "delete" });
  await letDie(event(13, "SETTLED", tomorrow));
  await apply(event(14, "SETTLED", tomorrow, { note: "newer" }));
  await letDie(event(15, "MOVED", tomorrow));
  await letDie(event(16, "UNKNOWN", tomorrow, { consumerEmail: "canary@example.com" }));
  await letDie(event(17, "UNKNOWN LATER", dayIn(30)));
  const found = await arrivals();
  expect(referencesOf(found)).toEqual({ unresolved: ["CHANGED", "MOVED", "UNKNOWN"], others: ["SETTLED"] });
  expect(found.counts).toEqual({ arriving: 4, unresolved: 3, dead: 3, waiting: 0, unreadable: 0 });
  const [unknown] = found.guests.filter(({ reference }: { reference: string }) => reference === "UNKNOWN");
  expect(unknown).toMatchObject({
    ...{ bookingId: null, arrivalDay: tomorrow, isApplied: false, appliedUntil: null },
    letters: [{ kind: "update", errorCode: "22003" }],
  });
  const { stdout } = await runOps(["arrivals"], { environment, now });
  expect(stdout).toMatch(/^\S+ +acme +UNKNOWN +\d+ min +nothing applied, update dead \(22003\)$/m);
  expect(stdout).toContain("4 arrive, 3 with something unresolved: 3 dead, 0 waiting, 0 with a contact");
  expect(stdout).not.toContain("canary");
  expect((await arrivals("--partner", "globe")).guests).toEqual([]);

  const erasing = ["guests", "erase", "--reference", "UNKNOWN", "--reason", "r", "--yes"];
  expect((await runOps(erasing, { environment })).exitCode).toBe(0);
  expect(referencesOf(await arrivals()).unresolved).toEqual(["CHANGED", "MOVED"]);
  const { rows } = await pool.query(
    "select count(consumer_trip_arrival_date)::int from dead_letters where resolution = 'erased'",
  );
  expect(rows).toEqual([{ count: 0 }]);
});

test("what can't be read is named, and only a contact makes a guest unresolved", async () => {
  await apply(
    event(1, "PHONE", tomorrow, { consumerPhone: "call me", consumerEmail: "jo@example.com" }),
    event(2, "AIRPORT", tomorrow, { consumerTripDestinationAirportCode: "Lisbon" }),
    event(3, "BLANK", tomorrow, { consumerPhone: " - " }),
  );
  const found = await arrivals();
  expect(referencesOf(found)).toEqual({ unresolved: ["PHONE"], others: ["AIRPORT", "BLANK"] });
  expect(found.counts).toMatchObject({ unresolved: 1, unreadable: 1 });
  const unreadable = Object.fromEntries(
    found.guests.map(({ reference, unreadable }: Record<string, unknown>) => [reference, unreadable]),
  );
  expect(unreadable).toEqual({
    ...{ PHONE: ["consumerPhone"], AIRPORT: ["consumerTripDestinationAirportCode"], BLANK: [] },
  });
});

test("what waits in the queue counts after a minute, and workers export the numbers", async () => {
  await apply(event(1, "WAITS", tomorrow), event(2, "DEAD", tomorrow), event(3, "LATER", dayIn(30)));
  await letDie(event(4, "DEAD", tomorrow));
  await letDie(event(5, "BOTH", tomorrow));
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  const fresh = event(now.getTime() - startMs - 5_000, "FRESH", tomorrow);
  await producer.enqueueNumbered([event(11, "WAITS", dayIn(30)), event(12, "NEW", tomorrow), fresh]);
  await producer.enqueueNumbered([
    event(13, "LATER", dayIn(31)),
    event(14, "DEAD", tomorrow),
    event(15, "BOTH", tomorrow),
  ]);
  const found = await arrivals();
  expect(referencesOf(found)).toEqual({ unresolved: ["BOTH", "DEAD", "NEW", "WAITS"], others: ["FRESH"] });
  expect(found.counts).toEqual({ arriving: 5, unresolved: 4, dead: 2, waiting: 4, unreadable: 0 });
  expect((await arrivals("--limit", "1")).counts).toEqual(found.counts);
  const [both] = found.guests.filter(({ reference }: { reference: string }) => reference === "BOTH");
  expect(both).toMatchObject({ letters: [{ arrivalDay: tomorrow }], waiting: [{ state: "waiting" }] });
  const [waits] = found.guests.filter(({ reference }: { reference: string }) => reference === "WAITS");
  expect(waits).toMatchObject({ isApplied: false, waiting: [{ kind: "update", state: "waiting" }] });

  const metrics = createMetrics("worker");
  await new ArrivalsWatch({ pool, queue, metrics }).look(now);
  const text = await metrics.metrics();
  expect(text).toMatch(/^booking_events_arrivals\S* 3$/m);
  for (const [reason, count] of Object.entries({ dead: 2, waiting: 4, unreadable: 0 }))
    expect(text).toMatch(new RegExp(`^booking_events_arrivals_unresolved\\{.*reason="${reason}".*\\} ${count}$`, "m"));

  const without = { DATABASE_URL: url };
  const { stderr, stdout } = await runOps(["arrivals"], { environment: without, now });
  expect(stderr).toBe("The queue was not looked at: REDIS_URL is not set\n");
  expect(stdout).toContain("2 dead, 0 waiting");
});

test("unresolved guests come first, and each group is in the order of arrival, wherever they were found", async () => {
  const at = (hours: number) => new Date(now.getTime() + hours * 3_600_000).toISOString();
  const ofGlobe = (...given: Parameters<typeof event>) => ({ ...event(...given), partner: "globe" });
  const unreadable = { consumerPhone: "call me" };
  await apply(
    ...[ofGlobe(1, "THIRD", dayIn(9), unreadable), ofGlobe(2, "FIRST", dayIn(3), unreadable)],
    ...[ofGlobe(3, "SIXTH", at(24 * 9)), ofGlobe(4, "FIFTH", at(24 * 4))],
  );
  await letDie(ofGlobe(5, "SECOND", dayIn(5)));
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  const fresh = (later: number) => now.getTime() - startMs - 5_000 + later;
  await producer.enqueueNumbered([ofGlobe(fresh(1), "SEVENTH", dayIn(11)), ofGlobe(fresh(2), "FOURTH", dayIn(2))]);
  const listed = async (...args: string[]) =>
    (await arrivals("--partner", "globe", "--within", "15d", ...args)).guests.map(
      ({ reference }: { reference: string }) => reference,
    );
  const inOrder = ["FIRST", "SECOND", "THIRD", "FOURTH", "FIFTH", "SIXTH", "SEVENTH"];
  expect(await listed()).toEqual(inOrder);
  for (const limit of [1, 2, 4]) expect(await listed("--limit", String(limit))).toEqual(inOrder.slice(0, limit));
});

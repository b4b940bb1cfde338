import { fileURLToPath } from "node:url";
import { useConsole } from "@booking-events/console/testing/start-console";
import { waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { noLimit, writePartnersFile } from "@booking-events/harness/partners-file";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createProducer, type Producer } from "@booking-events/queue";
import type { EventEnvelope } from "@booking-events/schema";
import { createPool, type DeadLetterToWrite, testSchemaOf, writeDeadLetter } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { shareSurroundings } from "./surroundings.ts";

const worker = fileURLToPath(new URL("../../apps/worker/src/main.ts", import.meta.url));

/** A console with a database and a queue of its own, into which a test puts events. */
export function useStory() {
  const own = shareSurroundings("a-secret-of-the-console-tests-0123456789");
  // An operator's events wait behind a hundred others.
  const desk = useConsole(() => ({ ...own.environment, MAX_BACKLOG: "1000" }));
  const duplicateWindowMs = 72 * 3_600_000;
  let producer: Producer;
  let testPool: ReturnType<typeof createPool>;
  beforeAll(() => {
    const { REDIS_URL: redisServers = "", QUEUE_PREFIX: prefix = "", DATABASE_URL: databaseUrl = "" } = own.environment;
    const limits = { rateLimit: noLimit };
    writePartnersFile(own.environment["PARTNERS_FILE"] ?? "", [
      partner("acme", {}, limits),
      partner("acme-test", {}, { ...limits, test: true }),
    ]);
    const schema = testSchemaOf("public");
    testPool = createPool({ databaseUrl, schema, applicationName: "test", maxConnections: 1, onError: () => {} });
    producer = createProducer({ redisServers, prefix, onError: () => {} });
  });
  beforeEach(() => own.pool.query("truncate operator_actions, feed_readers cascade"));
  afterAll(async () => {
    await testPool?.end();
    await producer?.close();
  });
  return {
    desk,
    databaseUrl: () => own.environment["DATABASE_URL"] ?? "",
    query: (sql: string) => own.pool.query(sql),
    queryTest: (sql: string) => testPool.query(sql),
    apply: (...events: EventEnvelope[]) => applyEvents(own.pool, events, { duplicateWindowMs }),
    /** Events of the test partner. */
    applyTest: (...events: EventEnvelope[]) => applyEvents(testPool, events, { duplicateWindowMs }),
    async enqueue(...events: EventEnvelope[]) {
      await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
      await producer.enqueueNumbered(events);
    },
    startWorker: () => own.start("worker", { entry: worker }),
    untilApplied: () => waitFor(async () => expect((await producer.measureLoad()).backlog).toBe(0)),
    insertLetter: (event: EventEnvelope, more: Partial<DeadLetterToWrite> = {}) =>
      writeDeadLetter(own.pool, {
        eventId: event.eventId,
        partner: event.partner,
        kind: event.kind,
        referenceKind: "trip",
        reference: String(event.payload.consumerTripPartnerExternalReference),
        sequence: event.sequence,
        errorCode: "22003",
        error: "It is too large.",
        attempts: 1,
        envelope: Buffer.from(JSON.stringify(event)),
        ...more,
      }),
    async ops(...args: string[]) {
      const { exitCode, stderr } = await runOps(args, { environment: own.environment });
      expect([exitCode, stderr]).toEqual([0, expect.anything()]);
    },
  };
}

const startMs = Date.UTC(2026, 10, 20);

/** The number of an event that is received now. */
export const secondsSinceStart = () => Math.floor((Date.now() - startMs) / 1_000);

/** Of the event with this number. It begins with the time of receipt, as ingest's do. */
export function idOf(number: number): string {
  const time = (startMs + number * 1_000).toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`;
}

/** An event of a trip. The numbers are the order of receipt, and a second lies between two of them. */
export function tripEvent(
  number: number,
  payload: Record<string, unknown>,
  more: Partial<EventEnvelope> & { reference?: string } = {},
): EventEnvelope {
  const { reference = "TRIP-1", ...rest } = more;
  const receivedAtMs = startMs + number * 1_000;
  return {
    version: 1,
    eventId: idOf(number),
    kind: "update",
    partner: "acme",
    sequence: receivedAtMs * 1_000,
    receivedAt: new Date(receivedAtMs).toISOString(),
    idempotencyKey: null,
    secretId: "s1",
    payload: { consumerTripPartnerExternalReference: reference, ...payload },
    ...rest,
  };
}

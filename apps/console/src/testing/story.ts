import { fileURLToPath } from "node:url";
import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { type AppProcess, fromSource, startApp } from "@booking-events/harness/app-process";
import { sampleEvent, sampleEventId } from "@booking-events/harness/sample-event";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createProducer, type Producer } from "@booking-events/queue";
import type { EventEnvelope } from "@booking-events/schema";
import { type DeadLetterToWrite, writeDeadLetter } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { afterAll, beforeEach, expect } from "vitest";
import { useConsole } from "./start-console.ts";

const main = fromSource(fileURLToPath(new URL("../../../worker/src/main.ts", import.meta.url)));

/** A console with a database and a queue of its own, into which a test puts events. */
export function useStory() {
  const { pool, url } = useTestDatabase();
  const environment = { DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };
  const desk = useConsole(() => environment);
  const queue = { redisServers: environment.REDIS_URL, prefix: environment.QUEUE_PREFIX };
  const producer: Producer = createProducer({ ...queue, onError: () => {} });
  const workers: AppProcess[] = [];
  beforeEach(() => pool.query("truncate dead_letters, booking_events, bookings, booking_changes, operator_actions"));
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.stop()));
    await producer.close();
  });
  return {
    pool,
    desk,
    producer,
    environment,
    apply: (...events: EventEnvelope[]) => applyEvents(pool, events, { duplicateWindowMs: 72 * 3_600_000 }),
    async enqueue(...events: EventEnvelope[]) {
      await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
      await producer.enqueueNumbered(events);
    },
    insertLetter: (number: number, { reference = "TRIP-1", ...more }: Partial<DeadLetterToWrite> = {}) =>
      writeDeadLetter(pool, {
        eventId: sampleEventId(number),
        partner: "acme",
        kind: "update",
        referenceKind: "trip",
        reference,
        sequence: sampleEvent(number).sequence,
        errorCode: "22003",
        error: "It is too large.",
        attempts: 1,
        envelope: Buffer.from(JSON.stringify(tripEvent(number, {}, reference === null ? {} : { reference }))),
        ...more,
      }),
    async ops(...args: string[]) {
      const { exitCode, stderr } = await runOps(args, { environment });
      expect([exitCode, stderr]).toEqual([0, expect.anything()]);
    },
    async startWorker() {
      const worker = await startApp(main, environment, { name: "worker" });
      workers.push(worker);
      await worker.untilReady();
    },
  };
}

/** An event of a trip. The numbers are the order of receipt. */
export function tripEvent(
  number: number,
  payload: Record<string, unknown>,
  more: Partial<EventEnvelope> & { reference?: string } = {},
): EventEnvelope {
  const { reference = "TRIP-1", ...rest } = more;
  const content = { consumerTripPartnerExternalReference: reference, ...payload };
  return sampleEvent(number, { kind: "update", secretId: "s1", payload: content, ...rest });
}

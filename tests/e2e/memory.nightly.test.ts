import { redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createProducer } from "@booking-events/queue";
import { afterEach, expect, test } from "vitest";
import { type RunningApp, runApp } from "./surroundings.ts";

/** The largest events that ingest accepts. Parsed, they take more than twice the heap. */
const shapes = {
  "fields with long names, as many as a body can hold": {
    count: 800,
    payload: Object.fromEntries(
      Array.from({ length: 1_900 }, (_, index) => [`a-field-with-a-long-name-${index}`, index]),
    ),
  },
};
const heapMiB = 256;

const { pool, url } = useTestDatabase({ maxConnections: 1 });
let worker: RunningApp | undefined;

afterEach(() => worker?.stop("SIGKILL"));

test.each(Object.entries(shapes))(
  "a worker with a small heap drains a full backlog of %s",
  { timeout: 180_000 },
  async (_, { count, payload }) => {
    await pool.query("truncate bookings, booking_events, booking_changes");
    const prefix = uniquePrefix();
    await fillQueue(prefix, count, payload);
    worker = await runApp("worker", {
      REDIS_URL: redisUrl(),
      DATABASE_URL: url,
      QUEUE_PREFIX: prefix,
      LOG_LEVEL: "warn",
      NODE_OPTIONS: `--max-old-space-size=${heapMiB}`,
    });
    await waitFor(
      async () => {
        const { exitCode, signalCode } = worker?.child ?? {};
        if (exitCode != null || signalCode != null) throw new Error(worker?.output().slice(-2_000));
        const { rows } = await pool.query("select count(*)::int as applied from booking_events");
        expect(rows).toEqual([{ applied: count }]);
      },
      { timeoutMs: 170_000, intervalMs: 500 },
    );
  },
);

async function fillQueue(prefix: string, count: number, payload: object): Promise<void> {
  const producer = createProducer({ redisServers: redisUrl(), prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  for (let added = 0; added < count; added += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        producer.enqueue({
          eventId: `0199a000-0000-7000-8000-${String(added + index).padStart(12, "0")}`,
          kind: "create",
          partner: "acme",
          receivedAt: "2026-11-20T00:00:00.000Z",
          idempotencyKey: null,
          payload: { ...payload, consumerTripPartnerExternalReference: `TRIP-${added + index}` },
        }),
      ),
    );
  }
  await producer.close();
}

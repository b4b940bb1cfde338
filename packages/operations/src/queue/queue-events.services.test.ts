import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { uniquePrefix, waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createShardedProducer, type NumberedEvent, type ShardedProducer } from "@booking-events/queue";
import { type DataServer, startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { queueEvents, type Shortage } from "./queue-events.ts";

const { pool } = useTestDatabase();
const folder = mkdtempSync(join(tmpdir(), "booking-events-queue-events-"));
let server: DataServer;
let admin: Redis;
let producer: ShardedProducer;

beforeAll(async () => {
  server = await startRedis({ dir: folder });
  admin = new Redis(server.url);
  producer = createShardedProducer({
    ...{ redisServers: server.url, prefix: uniquePrefix(), shardCount: 1 },
    onError: () => {},
  });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
});

afterAll(async () => {
  await producer?.close();
  admin?.disconnect();
  await server?.stop();
  rmSync(folder, { recursive: true });
});

const event = (number: number): NumberedEvent => ({
  ...{ eventId: `0199a000-0000-7000-8000-00000000000${number}`, kind: "create", partner: "acme", sequence: 1 },
  ...{ receivedAt: "2026-11-20T00:00:00.000Z", idempotencyKey: `import-${number}` },
  payload: { consumerTripPartnerExternalReference: "TRIP-1" },
});

async function fillMemory(share: number): Promise<void> {
  const used = Number(/^used_memory:(\d+)/m.exec(await admin.info("memory"))?.[1]);
  await admin.config("SET", "maxmemory", share === 0 ? "0" : String(Math.round(used / share)));
}

test("while there is no room, it is said what is short, and what to do", async () => {
  const shortages: Shortage[] = [];
  async function queue(number: number) {
    const counts = { queued: 0, known: 0 };
    await queueEvents(
      [event(number)],
      { producer, pool, limits: { maxBacklog: 10, memoryHighWater: 0.7 } },
      {
        count(what, by) {
          counts[what] += by;
        },
        wait: (shortage) => void shortages.push(shortage),
      },
    );
    return counts;
  }

  await fillMemory(0.9);
  const first = queue(1);
  await waitFor(() => expect(shortages).not.toEqual([]));
  expect(shortages[0]).toEqual({
    reason: expect.stringMatching(/^Redis uses \d\d % of its maxmemory; this waits above 56 %$/),
    advice: "Raise maxmemory, or find out what fills Redis.",
  });
  await fillMemory(0);
  expect(await first).toEqual({ queued: 1, known: 0 });

  shortages.length = 0;
  const second = queue(2);
  await waitFor(() => expect(shortages).not.toEqual([]));
  expect(shortages[0]).toEqual({ reason: "1 events are in the queue", advice: "Check that the worker runs." });
  await fillMemory(0.9);
  await waitFor(() =>
    expect(shortages.at(-1)).toEqual({
      reason: expect.stringContaining("of its maxmemory"),
      advice: "Check that the worker runs, or raise maxmemory.",
    }),
  );
  await fillMemory(0);
  await admin.flushall();
  expect(await second).toEqual({ queued: 1, known: 0 });
});

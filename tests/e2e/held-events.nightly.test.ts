import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { queueName } from "@booking-events/queue";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { printedByOps } from "./run-ops.ts";
import { type SteadyLoad, startLoad, writeLoadPartners } from "./steady-load.ts";
import { prepareSurroundings, type RunningApp } from "./surroundings.ts";

/** Measures how long the events that a worker holds wait when it ends. */
const secret = "a-secret-of-the-held-events-tests-01234567";
const bookings = 20;
const eventsOfEach = 20;
/** Of each worker. */
const concurrency = 100;
/** Events that wait for less were handed back: the locks of others last for 10 s. */
const handedBackMs = 5_000;

const surroundings = prepareSurroundings(secret);
let redis: Redis;
let load: SteadyLoad | undefined;

beforeEach(() => {
  redis = new Redis(surroundings().environment["REDIS_URL"] ?? "");
});

afterEach(async () => {
  redis.disconnect();
  await load?.close();
});

function startWorker(): Promise<RunningApp> {
  return surroundings().start("worker", { environment: { CONCURRENCY: String(concurrency) } });
}

async function queue(command: "pause" | "resume"): Promise<void> {
  await printedByOps(["queue", command], surroundings().environment);
}

/** For each booking, one event after the other. */
async function postEvents(ingest: RunningApp): Promise<void> {
  const postAll = async (reference: string) => {
    for (let number = 1; number <= eventsOfEach; number += 1) {
      const fields = { consumerGivenName: `version ${number}` };
      await postAccepted(ingest, { secret, kind: "update", reference, fields });
    }
  };
  await Promise.all(Array.from({ length: bookings }, (_, index) => postAll(`TRIP-${index}`)));
}

async function untilAllAreApplied(): Promise<void> {
  const countApplied = async () => {
    const { rows } = await surroundings().pool.query("select count(*)::int from booking_events");
    return rows[0].count;
  };
  await waitFor(async () => (await countApplied()) === bookings * eventsOfEach, { timeoutMs: 60_000 });
}

test.each([
  { signal: "SIGTERM", leastMs: 0, mostMs: handedBackMs },
  // They stay with it for 10 s at the most. That it takes so long shows that the worker has held events.
  { signal: "SIGKILL", leastMs: handedBackMs, mostMs: 20_000 },
] as const)("after $signal, another worker has applied what a worker held within $mostMs ms", async (expected) => {
  const [ingest, first] = await Promise.all([surroundings().start("ingest"), startWorker(), startWorker()]);
  await queue("pause");
  await postEvents(ingest);
  await queue("resume");
  const { environment } = surroundings();
  // More than one of them may hold.
  const bothHold = async () => (await redis.llen(`${environment["QUEUE_PREFIX"]}:${queueName}:active`)) > concurrency;
  await waitFor(bothHold, { intervalMs: 0 });
  first.child.kill(expected.signal);
  const endedAtMs = performance.now();
  await untilAllAreApplied();

  const waitedMs = performance.now() - endedAtMs;
  console.log(
    `After ${expected.signal}, the last of ${bookings * eventsOfEach} events waited ${Math.round(waitedMs)} ms.`,
  );
  expect(waitedMs).toBeLessThan(expected.mostMs);
  expect(waitedMs).toBeGreaterThan(expected.leastMs);
  const { rows } = await surroundings().pool.query(
    "select distinct payload->>'consumerGivenName' as name, state from bookings",
  );
  expect(rows).toEqual([{ name: `version ${eventsOfEach}`, state: "active" }]);
});

test("while a worker is replaced by another, no event waits for its locks to end", async () => {
  const { environment, pool } = surroundings();
  const partnersFile = join(environment["PARTNERS_FILE"] ?? "", "../load-partners.json");
  const secretOf = writeLoadPartners(partnersFile);
  const [ingest, old] = await Promise.all([
    surroundings().start("ingest", { environment: { PARTNERS_FILE: partnersFile } }),
    startWorker(),
  ]);
  const target = { ingestUrls: [ingest.url], secretOf, environment };
  load = startLoad({ ...target, queuePrefix: environment["QUEUE_PREFIX"] ?? "", perSecond: 200 });
  await waitFor(() => (load?.countAcknowledged() ?? 0) > 200);
  await startWorker();
  const stoppedAt = new Date();
  expect(await old.stop()).toBe(0);
  const acknowledged = load.countAcknowledged();
  await waitFor(() => (load?.countAcknowledged() ?? 0) > acknowledged + 200);
  await load.stop();

  const { tally, violations } = await load.judge();
  expect([violations, tally.acknowledged]).toEqual([[], load.posts.length]);
  const { rows } = await pool.query<{ count: number; ms: number }>(
    `select count(*)::int, max(extract(epoch from processed_at - greatest(received_at, $1)) * 1000)::float8 as ms
     from booking_events where processed_at > $1`,
    [stoppedAt],
  );
  console.log(`While a worker was replaced, no event of ${rows[0]?.count} waited for more than ${rows[0]?.ms} ms.`);
  expect(rows[0]?.count).toBeGreaterThan(200);
  expect(rows[0]?.ms).toBeLessThan(handedBackMs);
});

import { randomBytes } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import { formCluster } from "@booking-events/harness/redis-cluster";
import { startRedis } from "@booking-events/scripts/services";
import { Redis } from "ioredis";
import { cpuTimeUs } from "../cpu-time.ts";
import type { BenchDatabase } from "../data-services.ts";
import { countInstructions } from "../instructions.ts";
import { applyLoad } from "../load.ts";
import { newQueuePrefix, startIngest, startWorker } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { newBookings } from "../sample-events.ts";
import {
  type Bench,
  type Comparison,
  IntegrityError,
  type Measurement,
  type Scenario,
  type Section,
} from "../scenario.ts";

const nodeCount = 3;
const shardCount = 8;
/** Redis' default. */
const busPortDistance = 10_000;
/** The more requests at once, the more events share a call and a write to disk. */
const loads = [64, 512];
const pollMs = 50;

/** Where a queue is, and the processes of Redis that it uses. */
interface Queue {
  environment: Record<string, string>;
  redisPids: number[];
}

export const shards: Scenario = {
  name: "shards",
  about: `CPU time of an event: one shard on one Redis, and ${shardCount} on a cluster of ${nodeCount} nodes`,
  isOnWholeMachine: true,
  async run(bench) {
    await using stopping = new AsyncDisposableStack();
    const cluster = await startCluster(bench, stopping);
    const { redisUrl, redisPid } = bench.services;
    const one = { environment: { REDIS_URL: redisUrl }, redisPids: [redisPid] };
    const [ofOne, ofSeveral] = ["1 shard, 1 Redis", `${shardCount} shards, ${nodeCount} nodes`];
    const sections: Section[] = [];
    for (const connections of bench.isSmoke ? loads.slice(0, 1) : loads) {
      const title = `shards, ${connections} connections, all processes on all CPUs`;
      const measurements = await runRounds(bench, title, {
        [ofOne]: () => measure(bench, one, connections),
        [ofSeveral]: () => measure(bench, cluster, connections),
      });
      const beside = { of: ofSeveral, to: ofOne };
      const comparisons: Comparison[] = [
        { figure: "totalCpuUs", ...beside, atLeast: 1 / 1.2 },
        { figure: "totalKInstructions", ...beside },
      ];
      sections.push({ title, measurements, comparisons });
    }
    return sections;
  },
};

/** Accepts and applies events as fast as possible, and counts the CPU time until all of them are applied. */
function measure(bench: Bench, { environment: queue, redisPids }: Queue, connections: number): Promise<Measurement> {
  return bench.services.withDatabase(async (database) => {
    const queuePrefix = newQueuePrefix();
    const worker = await startWorker(bench, builtApps.worker, { queuePrefix, databaseUrl: database.url, queue });
    const ingest = await startIngest(bench, builtApps.ingest, queuePrefix, queue);
    const readCpu = () => ({
      apps: ingest.cpuUs() + worker.cpuUs(),
      redis: sumCpu(redisPids),
      postgres: sumCpu([bench.services.postgresPid]),
    });
    const load = async (durationMs: number, before: number) => {
      const result = await applyLoad({ url: ingest.createUrl, ...newBookings, connections, durationMs, isAside: true });
      await untilApplied(bench, database, before + result.answered);
      return result;
    };
    try {
      await load(bench.warmUpMs, 0);
      const appliedBefore = await countApplied(database);
      const { postgresPid } = bench.services;
      const endCount = await countInstructions([[ingest.pid, worker.pid, ...redisPids, postgresPid]]);
      const before = readCpu();
      const { answered, ...result } = await load(bench.measureMs, appliedBefore);
      const after = readCpu();
      const [instructions = Number.NaN] = await endCount();
      const perEvent = (part: keyof typeof before) => (after[part] - before[part]) / answered;
      const [cpuUs, redisCpuUs, postgresCpuUs] = [perEvent("apps"), perEvent("redis"), perEvent("postgres")];
      const applied = (await countApplied(database)) - appliedBefore;
      if (applied > answered + 2 * connections)
        throw new IntegrityError(`${answered} events were accepted, and ${applied} were applied.`);
      const totalCpuUs = cpuUs + redisCpuUs + postgresCpuUs;
      const totalKInstructions = instructions / 1_000 / answered;
      return { ...result, cpuUs, redisCpuUs, postgresCpuUs, totalCpuUs, totalKInstructions };
    } finally {
      await Promise.all([ingest.stop(), worker.stop()]);
      await bench.services.emptyRedis();
    }
  });
}

function sumCpu(pids: number[]): number {
  return pids.reduce((sum, pid) => sum + (cpuTimeUs(pid) ?? Number.NaN), 0);
}

/** Each event creates a booking, so it has one change, and the ids of changes have no gaps. */
async function countApplied(database: BenchDatabase): Promise<number> {
  const [row] = await database.query<{ count: string }>("select coalesce(max(id), 0) as count from booking_changes");
  return Number(row?.count);
}

async function untilApplied({ signal }: Bench, database: BenchDatabase, count: number): Promise<void> {
  while ((await countApplied(database)) < count) await sleep(pollMs, undefined, { signal });
}

/** Without replicas, as the Redis that it is compared with has none. */
async function startCluster({ dir, signal }: Bench, stopping: AsyncDisposableStack): Promise<Queue> {
  const password = randomBytes(24).toString("hex");
  const nodes = await Promise.all(
    Array.from({ length: nodeCount }, async (_, index) => {
      const settings = { "cluster-enabled": "yes", "auto-aof-rewrite-percentage": "0" };
      const nodeDir = join(dir, `node-${index}`);
      mkdirSync(nodeDir);
      // All nodes must have the same one.
      writeFileSync(join(nodeDir, "password"), password, { mode: 0o600 });
      const server = await startRedis({ dir: nodeDir, settings, signal });
      stopping.defer(() => server.stop());
      const { port } = server;
      const redis = new Redis(server.url);
      stopping.defer(() => redis.disconnect());
      const ask = async <Answer>(command: string, ...args: (string | number)[]) =>
        (await redis.call(command, ...args)) as Answer;
      return { name: `node ${index}`, ask, port, busPort: port + busPortDistance, pid: server.pid };
    }),
  );
  await formCluster(nodes, nodeCount, 0);
  return {
    environment: {
      REDIS_CLUSTER: nodes.map(({ port }) => `127.0.0.1:${port}`).join(),
      ...{ REDIS_PASSWORD: password, QUEUE_SHARDS: String(shardCount) },
    },
    redisPids: nodes.map(({ pid }) => pid),
  };
}

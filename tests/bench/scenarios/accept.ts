import { builtApps } from "@booking-events/harness/app-process";
import { queueName } from "@booking-events/queue";
import { cpuTimeUs } from "../cpu-time.ts";
import { countInstructions } from "../instructions.ts";
import { applyLoad, type Load } from "../load.ts";
import { baseline, fromOtherClone, newQueuePrefix, startIngest } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { bodies } from "../sample-events.ts";
import {
  type Bench,
  type Comparison,
  IntegrityError,
  type Measurement,
  type Scenario,
  type Section,
} from "../scenario.ts";

const loads: { connections: number; type: keyof typeof bodies }[] = [
  { connections: 64, type: "JSON" },
  { connections: 512, type: "JSON" },
  { connections: 64, type: "form" },
];

/** Of several hundred connections at once, an ingest that is new to a busy machine refuses some. */
const warmUpConnections = 64;

export const accept: Scenario = {
  name: "accept",
  about: "events accepted by one ingest process, beside what its libraries' documentation shows",
  async run(bench) {
    const sections: Section[] = [];
    for (const load of bench.isSmoke ? loads.slice(0, 1) : loads) sections.push(await compare(bench, load));
    return sections;
  },
};

async function compare(bench: Bench, { connections, type }: (typeof loads)[number]): Promise<Section> {
  const title = `accept, ${connections} connections, ${type}`;
  const others = { textbook: baseline("textbook"), ...fromOtherClone(bench, builtApps.ingest) };
  const programs: [string, readonly string[]][] = Object.entries({ ours: builtApps.ingest, ...others });
  const variants = programs.map(([name, program]) => [
    name,
    () => measureAccept(bench, program, { connections, ...bodies[type] }),
  ]);
  return {
    title,
    measurements: await runRounds(bench, title, Object.fromEntries(variants)),
    comparisons: Object.keys(others).flatMap((to): Comparison[] => [
      { figure: "eventsPerSecond", of: "ours", to },
      { figure: "cpuUs", of: "ours", to },
      { figure: "kInstructions", of: "ours", to },
    ]),
  };
}

/** Posts as many events as one ingest, or a baseline of it, accepts. */
async function measureAccept(
  bench: Bench,
  program: readonly string[],
  requests: Pick<Load, "connections" | "body" | "contentType" | "hasIds">,
): Promise<Measurement> {
  const { redis, redisPid, emptyRedis } = bench.services;
  const queuePrefix = newQueuePrefix();
  const ingest = await startIngest(bench, program, queuePrefix);
  const readCpu = () => [ingest.cpuUs(), cpuTimeUs(redisPid) ?? Number.NaN] as const;
  try {
    const load = { url: ingest.createUrl, ...requests };
    const connections = Math.min(requests.connections, warmUpConnections);
    const warmUp = await applyLoad({ ...load, connections, durationMs: bench.warmUpMs });
    const endCount = await countInstructions([[ingest.pid], [redisPid]]);
    const before = readCpu();
    const { answered, ...result } = await applyLoad({ ...load, durationMs: bench.measureMs });
    const after = readCpu();
    const [ofIngest = Number.NaN, ofRedis = Number.NaN] = await endCount();
    const queued = await redis.llen(`${queuePrefix}:${queueName}:wait`);
    checkQueued(queued, warmUp.answered + answered, requests.connections);
    const [cpuUs, redisCpuUs] = [(after[0] - before[0]) / answered, (after[1] - before[1]) / answered];
    const [kInstructions, redisKInstructions] = [ofIngest / 1_000 / answered, ofRedis / 1_000 / answered];
    return { ...result, cpuUs, redisCpuUs, kInstructions, redisKInstructions };
  } finally {
    await ingest.stop();
    await emptyRedis();
  }
}

/** The load generator stops abruptly: each connection may have one more accepted event, in each of the two loads. */
function checkQueued(queued: number, answered: number, connections: number): void {
  if (queued < answered || queued > answered + 2 * connections) {
    throw new IntegrityError(`${answered} events were accepted, and ${queued} are in the queue.`);
  }
}

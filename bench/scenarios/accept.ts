import { queueName } from "@booking-events/queue";
import {
  baseline,
  type Contestant,
  newQueuePrefix,
  noLimit,
  programs,
  startContestant,
  writePartners,
} from "../contestant.ts";
import { cpuTimeUs } from "../cpu-time.ts";
import { applyLoad, type LoadResult } from "../load.ts";
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
import { spreadOf } from "../statistics.ts";

const contestants = {
  ours: { program: programs.ours, queues: true },
  stack: { program: baseline("stack"), queues: false },
  textbook: { program: baseline("textbook"), queues: true },
  fastify: { program: baseline("fastify"), queues: true },
  bare: { program: baseline("bare"), queues: false },
} as const;
type Name = keyof typeof contestants;

const targets: [of: Name, atLeast: number][] = [
  ["stack", 0.85],
  ["textbook", 1.4],
  ["fastify", 1],
  ["bare", 0.25],
];

export const accept: Scenario = {
  name: "accept",
  about: "events accepted by one ingest process, beside four baselines",
  async run(bench) {
    const sections: Section[] = [];
    const loads = bench.isSmoke
      ? [[8, "JSON"] as const]
      : ([
          [64, "JSON"],
          [512, "JSON"],
          [64, "form"],
        ] as const);
    for (const [connections, type] of loads) {
      const title = `accept, ${connections} connections, ${type}`;
      const run = (name: Name) => () => measure(bench, name, { connections, type });
      const measurements = await runRounds(bench, title, {
        ours: run("ours"),
        stack: run("stack"),
        textbook: run("textbook"),
        fastify: run("fastify"),
        bare: run("bare"),
      });
      const comparisons = targets.flatMap(([to, atLeast]): Comparison[] => [
        { figure: "eventsPerSecond", of: "ours", to, atLeast },
        { figure: "cpuUs", of: "ours", to, atLeast },
      ]);
      sections.push({ title, measurements, comparisons });
    }
    if (!bench.isSmoke) sections.push(await atHalfLoad(bench, sections[0]));
    return sections;
  },
};

/** Half of what the textbook sustains: a load at which nobody is at the limit. */
async function atHalfLoad(bench: Bench, full: Section | undefined): Promise<Section> {
  const sustained = full?.measurements["textbook"]?.map(({ eventsPerSecond = 0 }) => eventsPerSecond) ?? [];
  const rate = Math.round(spreadOf(sustained).median / 2);
  const title = `accept, ${rate} events/s over 64 connections, JSON`;
  const run = (name: Name) => () => measure(bench, name, { connections: 64, type: "JSON", rate });
  const measurements = await runRounds(bench, title, {
    ours: run("ours"),
    textbook: run("textbook"),
    fastify: run("fastify"),
  });
  return {
    title,
    measurements,
    comparisons: [
      { figure: "p99Ms", of: "ours", to: "textbook", atLeast: 1 },
      { figure: "p50Ms", of: "ours", to: "textbook" },
    ],
  };
}

async function measure(
  bench: Bench,
  name: Name,
  { connections, type, rate }: { connections: number; type: keyof typeof bodies; rate?: number },
): Promise<Measurement> {
  const { services } = bench;
  const { program, queues } = contestants[name];
  const { file, secretOf } = await writePartners(bench.dir, { acme: noLimit });
  const queuePrefix = newQueuePrefix();
  const contestant = await startContestant(bench, program, {
    ...{ REDIS_URL: services.redisUrl, QUEUE_PREFIX: queuePrefix, PARTNERS_FILE: file },
  });
  try {
    const url = `${contestant.url}/booking-event/create/${secretOf["acme"]}`;
    const load = (durationMs: number) => applyLoad({ url, ...bodies[type], connections, rate, durationMs });
    const warmUp = await load(bench.warmUpMs);
    const before = readCpu(bench, contestant);
    const result = await load(bench.measureMs);
    const after = readCpu(bench, contestant);
    if (queues) await checkQueued(bench, queuePrefix, warmUp.answered + result.answered, connections);
    return toMeasurement(result, before, after);
  } finally {
    await contestant.stop();
    await services.redis.flushall();
  }
}

type CpuReading = Record<"cpuUs" | "redisCpuUs" | "loadCpuUs", number | undefined>;

function readCpu({ services }: Bench, contestant: Contestant): CpuReading {
  return {
    cpuUs: contestant.cpuUs(),
    redisCpuUs: cpuTimeUs(services.redisPid),
    loadCpuUs: process.cpuUsage().user + process.cpuUsage().system,
  };
}

function toMeasurement(
  { answered, statuses: _, ...figures }: LoadResult,
  before: CpuReading,
  after: CpuReading,
): Measurement {
  const perEvent = (figure: keyof CpuReading) => {
    const [from, to] = [before[figure], after[figure]];
    return from === undefined || to === undefined ? undefined : (to - from) / answered;
  };
  return { ...figures, cpuUs: perEvent("cpuUs"), redisCpuUs: perEvent("redisCpuUs"), loadCpuUs: perEvent("loadCpuUs") };
}

/** A load generator stops in the middle: up to one more request for each connection may have been accepted. */
async function checkQueued({ services }: Bench, prefix: string, answered: number, connections: number): Promise<void> {
  const queued = await services.redis.llen(`${prefix}:${queueName}:wait`);
  if (queued < answered || queued > answered + 2 * connections) {
    throw new IntegrityError(`${answered} events were accepted, and ${queued} are in the queue.`);
  }
}

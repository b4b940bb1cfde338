import { noLimit } from "@booking-events/harness/partners-file";
import { queueName } from "@booking-events/queue";
import { type Contestant, newQueuePrefix, startContestant, writePartners } from "./contestant.ts";
import { cpuTimeUs } from "./cpu-time.ts";
import { callEvenly, post, timeMs, toLatency } from "./even-load.ts";
import { applyLoad, type LoadResult } from "./load.ts";
import { bodies } from "./sample-events.ts";
import { type Bench, IntegrityError, type Measurement } from "./scenario.ts";

export interface AcceptOptions {
  program: readonly string[];
  /** False: what it accepts goes nowhere, and nothing needs to be in the queue. */
  queues: boolean;
  connections: number;
  type: keyof typeof bodies;
  /** Requests a second, in even steps, over 64 connections at the most; undefined: as many as it takes. */
  rate?: number;
  environment?: Record<string, string>;
  /** A queue with events in it, which are left there with the new ones. Default: a new one, which is deleted. */
  queuePrefix?: string;
}

/** Events accepted by one ingest process, each of the full size. */
export async function measureAccept(
  bench: Bench,
  { program, queues, connections, type, rate, environment, queuePrefix }: AcceptOptions,
): Promise<Measurement> {
  const { services } = bench;
  const { file, secretOf } = writePartners(bench, { acme: noLimit });
  const prefix = queuePrefix ?? newQueuePrefix();
  const countQueued = () => services.redis.llen(`${prefix}:${queueName}:wait`);
  const queuedBefore = await countQueued();
  const contestant = await startContestant(bench, program, {
    ...{ REDIS_URL: services.redisUrl, QUEUE_PREFIX: prefix, PARTNERS_FILE: file },
    ...environment,
  });
  try {
    const url = `${contestant.url}/booking-event/create/${secretOf["acme"]}`;
    const load = (durationMs: number) => applyLoad({ url, ...bodies[type], connections, durationMs });
    // As fast as it goes: at a lower rate V8 would still be compiling while the measurement runs.
    const warmUp = await load(bench.warmUpMs);
    const before = readCpu(bench, contestant);
    const result = await (rate === undefined
      ? load(bench.measureMs)
      : applyEvenLoad(rate, bench.measureMs, () => post(url, bodies[type])));
    const after = readCpu(bench, contestant);
    if (queues) checkQueued((await countQueued()) - queuedBefore, warmUp.answered + result.answered, connections);
    return toMeasurement(result, before, after);
  } finally {
    await contestant.stop();
    if (queuePrefix === undefined) await services.emptyRedis();
  }
}

async function applyEvenLoad(rate: number, durationMs: number, send: () => Promise<unknown>) {
  const startedAtMs = performance.now();
  const timesMs = await callEvenly(rate, durationMs, () => timeMs(send));
  const eventsPerSecond = (timesMs.length * 1_000) / (performance.now() - startedAtMs);
  return { answered: timesMs.length, eventsPerSecond, ...toLatency(timesMs) };
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
  { answered, eventsPerSecond, p50Ms, p99Ms }: Omit<LoadResult, "statuses">,
  before: CpuReading,
  after: CpuReading,
): Measurement {
  const perEvent = (figure: keyof CpuReading) => {
    const [from, to] = [before[figure], after[figure]];
    return from === undefined || to === undefined ? undefined : (to - from) / answered;
  };
  return {
    eventsPerSecond,
    p50Ms,
    p99Ms,
    cpuUs: perEvent("cpuUs"),
    redisCpuUs: perEvent("redisCpuUs"),
    loadCpuUs: perEvent("loadCpuUs"),
  };
}

/** A load generator stops in the middle: up to one more request for each connection may have been accepted. */
function checkQueued(queued: number, answered: number, connections: number): void {
  if (queued < answered || queued > answered + 2 * connections) {
    throw new IntegrityError(`${answered} events were accepted, and ${queued} are in the queue.`);
  }
}

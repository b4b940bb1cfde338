import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import type { Build } from "./builds.ts";
import { check, type Violation } from "./check.ts";
import { createQueueCounter } from "./count-queue.ts";
import { drain } from "./drain.ts";
import { findUnready } from "./find-unready.ts";
import { type Flood, startFlood } from "./flood-refusals.ts";
import { followDatabase } from "./follow-database.ts";
import { type Hold, holdBooking } from "./hold-booking.ts";
import { measureCores } from "./measure-cores.ts";
import { makeNeighbourReport, type NeighbourReport, type OrdinaryEvent } from "./neighbour-report.ts";
import {
  type Draft,
  inventHot,
  inventLocked,
  inventOrdinary,
  inventWorst,
  lockedReference,
  startTraffic,
} from "./neighbour-traffic.ts";
import { readDatabase } from "./read-database.ts";
import type { RateLimit, System } from "./start-system.ts";
import { watchApplied } from "./watch-applied.ts";
import { listBackends, watchMemory } from "./watch-memory.ts";
import { withSystem } from "./with-system.ts";

export interface NeighbourOptions {
  build: Build;
  /** How long the well-behaved partners are alone at first, so that there is something to compare with. */
  quietMs: number;
  loudMs: number;
  /** What each of the worst two partners sends. Default: as much as its limit allows. */
  neighbourPerSecond?: number;
  /** How many connections send what is refused. Default: 50. */
  strangers?: number;
  /** Keeps data and logs when a promise is broken, and says where. */
  keepsEvidence: boolean;
  say: (line: string) => void;
  /** Stops everything. */
  signal: AbortSignal;
}

const appNames = ["ingest-1", "ingest-2", "worker-1", "worker-2"] as const;
/** V8's heap, in MB: it ends rather than grow beyond it. What the processes take in all is limited by the report. */
const heapMegabytes = { ingest: 384, worker: 576 };

const wellBehaved = ["acme", "globe", "zenith", "orbit"];
/** The default of `ops partners add`. */
const rateLimit: RateLimit = { perSecond: 200, burst: 400 };
const ordinaryPerSecond = 10;
const defaultStrangers = 50;
/** The rest is for its events to be tried again: the longer it lasts, the longer they would be put off. */
const lockedShare = 0.75;
/** Beyond the sixth delay of the retry policy, which is 4 min 3 s. */
const standstillMs = 300_000;
const progressIntervalMs = 5_000;

/**
 * One run: well-behaved partners post, first alone, then beside a partner that sends the worst payloads, one that sends
 * everything about one booking, one whose booking's row somebody keeps locked, and a flood of refused requests. Then the
 * queue must drain, and everything must be there.
 *
 * @throws the signal's reason when it aborts; whatever keeps the run from being a run. What the service does wrong is in
 *   the report.
 */
export function runBadNeighbour(options: NeighbourOptions): Promise<NeighbourReport> {
  const build = limitHeaps(options.build);
  const partners = [...wellBehaved, "worst", "hot", "locked"];
  return withSystem({ ...options, build, appNames, partners, rateLimit }, (system, crashes) =>
    runOn(system, crashes, options),
  );
}

function limitHeaps(build: Build): Build {
  const limit = (megabytes: number, args: readonly string[]) => [`--max-old-space-size=${megabytes}`, ...args];
  return {
    ...build,
    ingest: limit(heapMegabytes.ingest, build.ingest),
    worker: limit(heapMegabytes.worker, build.worker),
  };
}

async function runOn(
  system: System<(typeof appNames)[number]>,
  crashes: readonly string[],
  options: NeighbourOptions,
): Promise<NeighbourReport> {
  const { build, quietMs, loudMs, say, signal } = options;
  const { neighbourPerSecond = rateLimit.perSecond, strangers = defaultStrangers } = options;
  const startedAt = new Date();
  const { ingestUrls, databaseUrl } = system;
  const asCrash = (what: string): Violation => ({ kind: "crashed", what });
  const violations = (await findUnready(system.apps, signal)).map(asCrash);
  const queue = createQueueCounter(system.redisUrl, system.queuePrefix);
  const follower = followDatabase(databaseUrl);
  const applied = await watchApplied(databaseUrl);
  const memory = watchMemory(() => [
    ...system.apps.map(({ name, pid = 0 }) => ({ name, pid })),
    { name: "redis", pid: system.redis.pid },
    ...listBackends(system.postgres.pid).map((pid) => ({ name: "postgres backend", pid })),
  ]);

  const events: OrdinaryEvent[] = [];
  const stopping = new AbortController();
  const until = AbortSignal.any([signal, stopping.signal]);
  const start = (partner: string, perSecond: number, invent: (index: number) => Draft) =>
    startTraffic({
      ...{ partner, perSecond, invent, ingestUrls, secret: system.secretOf(partner), signal: until },
      onAnswer({ sentAtMs, endedAtMs, end }, status) {
        if (!wellBehaved.includes(partner)) return;
        const eventId = end.result === "acknowledged" ? end.eventId : null;
        events.push({ eventId, sentAtMs, answeredAtMs: endedAtMs, status });
        if (eventId !== null) applied.expect(eventId);
      },
    });
  let flood: Flood | undefined;
  const telling = new AbortController();
  const told = tellProgress();
  try {
    say(`Ready. ${wellBehaved.length} well-behaved partners alone for ${quietMs / 1_000} s.`);
    const ordinary = wellBehaved.map((partner) => start(partner, ordinaryPerSecond, inventOrdinary));
    await sleep(quietMs, undefined, { signal });

    say(`Now with the neighbours, for ${loudMs / 1_000} s.`);
    const loudFromMs = performance.now();
    const endMeasuringCores = measureCores({
      ...Object.fromEntries(system.apps.map(({ name, pid = 0 }) => [name, pid])),
      ...{ redis: system.redis.pid, postgres: system.postgres.pid },
    });
    const ownDelay = monitorEventLoopDelay();
    ownDelay.enable();
    const neighbours = [
      start("worst", neighbourPerSecond, inventWorst),
      start("hot", neighbourPerSecond, inventHot),
      start("locked", ordinaryPerSecond, inventLocked),
    ];
    flood = startFlood({ ports: ingestUrls.map((url) => Number(new URL(url).port)), connections: strangers });
    const unlocking = AbortSignal.any([until, AbortSignal.timeout(loudMs * lockedShare)]);
    const holding = holdBooking({
      ...{ databaseUrl, partner: "locked", reference: lockedReference, signal: unlocking },
    });
    // One that fails is reported below, when the traffic has stopped.
    holding.catch(() => {});
    await sleep(loudMs, undefined, { signal });
    const cores = endMeasuringCores();
    stopping.abort();
    const refused = await flood.stop();
    const traffics = [...ordinary, ...neighbours];
    await Promise.all(traffics.map(({ done }) => done));
    ownDelay.disable();
    const holds: Hold[] = await holding;

    say("All is quiet again. Waiting for the queue to become empty.");
    const quietAgainAtMs = performance.now();
    const left = await drain({
      ...{ countQueue: () => queue.count(), countApplied: () => follower.applied, standstillMs, signal },
    });
    const drainedInMs = performance.now() - quietAgainAtMs;
    if (left !== undefined) violations.push({ kind: "stuck", what: left });
    await Promise.all([applied.stop(), follower.finish()]);
    // Before the tables are read, which takes a backend some memory that nobody else asks it for.
    const peaks = memory.stop();
    violations.push(...(await findUnready(system.apps, signal)).map(asCrash), ...crashes.map(asCrash));
    const checked = check({
      posts: traffics.flatMap(({ posts }) => posts),
      database: await readDatabase(databaseUrl),
      followedChangeIds: follower.changeIds,
      duplicateWindowMs: system.duplicateWindowMs,
    });
    violations.push(...checked.violations);
    return makeNeighbourReport({
      ...{ build: build.name, startedAt, quietMs, loudMs, drainedInMs, tally: checked.tally, violations, peaks, holds },
      ...{ cores, traffics, refused, loudFromMs, events, appliedAtMs: applied.seenAtMs, wellBehaved },
      ownDelayMs: ownDelay.percentile(99) / 1e6,
    });
  } finally {
    stopping.abort();
    telling.abort();
    memory.stop();
    follower.stop();
    // After a run to the end these have nothing left to do.
    await Promise.all([flood?.end(), applied.stop().catch(() => {}), told]);
    await queue.close();
  }

  async function tellProgress(): Promise<void> {
    for (;;) {
      await sleep(progressIntervalMs, undefined, { signal: telling.signal }).catch(() => {});
      if (telling.signal.aborted) return;
      const counts = await queue.count();
      const { size } = applied.seenAtMs;
      say(
        `${String(Math.round((Date.now() - startedAt.getTime()) / 1_000)).padStart(5)} s` +
          `  of well-behaved partners: answered ${events.length}, applied ${size}` +
          `  applied in all ${follower.applied}  in the queue ${counts === null ? "?" : JSON.stringify(counts)}`,
      );
    }
  }
}

import { setTimeout as sleep } from "node:timers/promises";
import type { Build } from "./builds.ts";
import { check, type Violation } from "./check.ts";
import { createQueueCounter, type QueueCounter, sumCounts } from "./count-queue.ts";
import { drain } from "./drain.ts";
import { appNames, describeFault, type Fault, maxClockErrorMs } from "./fault-plan.ts";
import { findUnready } from "./find-unready.ts";
import { type DatabaseFollower, followDatabase } from "./follow-database.ts";
import { inventHistories, partners } from "./histories.ts";
import { injectFaults } from "./inject-faults.ts";
import { lockRows } from "./lock-rows.ts";
import { type Load, postHistories } from "./post-histories.ts";
import { createRandom } from "./random.ts";
import { readDatabase } from "./read-database.ts";
import { makeReport, noClockSteps, type Report } from "./report.ts";
import type { System } from "./start-system.ts";
import { withSystem } from "./with-system.ts";

export interface ChaosOptions {
  seed: number;
  build: Build;
  faults: readonly Fault[];
  postMs: number;
  ratePerSecond: number;
  /** Keeps data and logs when something is violated, and says where. */
  keepsEvidence: boolean;
  say: (line: string) => void;
  /** Stops everything. */
  signal: AbortSignal;
}

const progressIntervalMs = 5_000;
/** Locks and delays that are kept by Redis' clock last longer by as much as it is set back. */
const standstillMs = 90_000 + 2 * maxClockErrorMs;

/**
 * One run: starts the system, posts random histories while faults hit it, lets it come to rest, and compares what
 * partners were told with what stands in the database.
 *
 * @throws the signal's reason when it aborts; whatever keeps the run from being a run. What the system does wrong is
 *   in the report.
 */
export function runChaos(options: ChaosOptions): Promise<Report> {
  return withSystem({ ...options, appNames, partners, isForFaults: true }, (system, crashes) =>
    runOn(system, crashes, options),
  );
}

async function runOn(system: System, crashes: readonly string[], options: ChaosOptions): Promise<Report> {
  const { seed, build, postMs, ratePerSecond, say, signal } = options;
  const faults = options.faults.filter(({ action }) => action !== "set clock" || system.canSetClock);
  if (!system.canSetClock) say(noClockSteps);
  const startedAt = new Date();
  const violations: Violation[] = [];
  const asCrash = (what: string): Violation => ({ kind: "crashed", what });
  violations.push(...(await findUnready(system.apps, signal)).map(asCrash));
  say(`Ready. Posting ${ratePerSecond} events/s for ${postMs / 1_000} s, with ${faults.length} faults.`);

  const queue = createQueueCounter(system.redisUrl, system.queuePrefix);
  const follower = followDatabase(system.databaseUrl);
  const load = postHistories({
    intents: inventHistories(createRandom(seed, "histories")),
    random: createRandom(seed, "partners"),
    ...{ ratePerSecond, durationMs: postMs, signal },
    ingestUrls: system.ingestUrls,
    secretOf: system.secretOf,
  });
  const progress = { lastFault: "none yet", stop: new AbortController() };
  const telling = tellProgress({ load, queue, follower, progress, say });
  const unlocking = new AbortController();
  const locking = lockRows({
    databaseUrl: system.databaseUrl,
    random: createRandom(seed, "locks"),
    signal: AbortSignal.any([signal, unlocking.signal]),
  });
  try {
    const onFault = (fault: Fault) => {
      progress.lastFault = describeFault(fault);
    };
    await Promise.all([load.done, injectFaults(faults, system.targets, { signal, onFault })]);
    signal.throwIfAborted();
    unlocking.abort();
    const rowLocks = await locking;
    say("All faults are over and all partners have stopped. Waiting for the queue to become empty.");
    violations.push(...(await findUnready(system.apps, signal)).map(asCrash));
    const left = await drain({
      ...{ countQueue: () => queue.count(), countApplied: () => follower.applied, standstillMs, signal },
    });
    if (left !== undefined) violations.push({ kind: "stuck", what: left });
    await follower.finish();
    const database = await readDatabase(system.databaseUrl);
    const { duplicateWindowMs } = system;
    const checked = check({ posts: load.posts, database, followedChangeIds: follower.changeIds, duplicateWindowMs });
    violations.push(...checked.violations, ...crashes.map(asCrash), ...findLostAttempts(await system.readLogs()));
    const { tls, plain } = follower.workerConnections;
    if (tls.size === 0 || plain.size > 0)
      throw new Error(`Of the workers' connections, ${tls.size} were over TLS and ${plain.size} not: this was no run.`);
    const tookMs = Date.now() - startedAt.getTime();
    const run = {
      seed,
      build: build.name,
      ratePerSecond,
      postedForMs: postMs,
      startedAt: startedAt.toISOString(),
      tookMs,
    };
    const seen = { faults, rowLocks, tlsConnections: tls.size, clockIsSet: system.canSetClock };
    return makeReport({ ...run, ...seen, tally: checked.tally }, violations);
  } finally {
    progress.stop.abort();
    unlocking.abort();
    follower.stop();
    await Promise.all([telling, locking]);
    await queue.close();
  }
}

/**
 * What a lock from outside costs, which is no outage: `HeldUp` the events that stood aside too long, 55P03
 * (lock_not_available) those of the locked booking itself, after five waits of a second.
 */
const costOfLocks = /"code":"(?:HeldUp|55P03)"/;

/** A worker says so when an event has lost an attempt. */
function findLostAttempts(logs: string[]): Violation[] {
  return logs
    .flatMap((log) => log.split("\n"))
    .filter((line) => line.includes('"msg":"attempt failed"') && !costOfLocks.test(line))
    .map((what) => ({ kind: "attempt lost", what }));
}

async function tellProgress(options: {
  load: Load;
  queue: QueueCounter;
  follower: DatabaseFollower;
  progress: { lastFault: string; stop: AbortController };
  say: (line: string) => void;
}): Promise<void> {
  const { load, queue, follower, progress, say } = options;
  const { signal } = progress.stop;
  const startedAtMs = performance.now();
  while (!signal.aborted) {
    await sleep(progressIntervalMs, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const counts = await queue.count();
    const elapsedS = Math.round((performance.now() - startedAtMs) / 1_000);
    say(
      `${String(elapsedS).padStart(5)} s  posted ${load.posts.length}  acknowledged ${load.acknowledged}` +
        `  applied ${follower.applied}  in the queue ${counts === null ? "?" : sumCounts(counts)}` +
        `  last fault: ${progress.lastFault}`,
    );
  }
}

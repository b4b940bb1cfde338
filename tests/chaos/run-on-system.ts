import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness/wait-for";
import { repeat } from "@booking-events/runtime";
import { check, type Violation } from "./check.ts";
import { followDatabase } from "./follow-database.ts";
import type { Post } from "./post-events.ts";
import { readDatabase } from "./read-database.ts";
import { makeReport, type Report } from "./report.ts";
import { type System, type SystemOptions, startSystem } from "./start-system.ts";
import type { SupervisedApp } from "./supervise.ts";
import { watchQueue } from "./watch-queue.ts";

export interface RunOptions extends Pick<SystemOptions, "build" | "signal"> {
  /** Keeps data and logs of a run that has not passed, and says where. */
  keepsEvidence: boolean;
  say: (line: string) => void;
}

const progressIntervalMs = 5_000;
const readyTimeoutMs = 90_000;
const readyPollMs = 200;

/**
 * One run on a system of its own, which is stopped afterwards, however the run ends.
 *
 * @throws the signal's reason when it aborts; an error when the run could prove nothing. What the service does wrong is
 *   in the report.
 */
export async function runOnSystem<Result extends Report>(
  options: RunOptions & Omit<SystemOptions, "dir" | "onCrash">,
  work: (run: Run) => Promise<Result>,
): Promise<Result> {
  const { say, signal, keepsEvidence } = options;
  const dir = await mkdtemp(join(tmpdir(), "booking-events-chaos-"));
  // PostgreSQL's own user must get to its data.
  await chmod(dir, 0o711);
  let keeps = keepsEvidence;
  try {
    const violations: Violation[] = [];
    const onCrash = (what: string) => void violations.push({ kind: "crashed", what });
    const system = await startSystem({ ...options, dir, onCrash });
    const run = startRun(system, violations, options);
    try {
      await run.untilReady();
      const report = await work(run);
      keeps = keepsEvidence && !report.passed;
      return report;
    } finally {
      if (signal.aborted) {
        say("Stopping.");
        keeps = false;
      }
      await run.end();
      await system.stop();
    }
  } finally {
    if (keeps) say(`Data and logs of the run: ${dir}`);
    else await rm(dir, { recursive: true, force: true });
  }
}

export type Run = ReturnType<typeof startRun>;

function startRun(system: System, violations: Violation[], { build, say, ...options }: RunOptions) {
  const startedAt = new Date();
  const ending = new AbortController();
  const signal = AbortSignal.any([options.signal, ending.signal]);
  const queue = watchQueue(system.locateShards);
  const follower = followDatabase(system.pool, signal);
  let telling: Promise<void> | undefined;

  async function untilReady(): Promise<void> {
    const waitOptions = { timeoutMs: readyTimeoutMs, intervalMs: readyPollMs };
    const wait = ({ name, isReady }: SupervisedApp) =>
      waitFor(async () => signal.aborted || (await isReady()), waitOptions).catch(() => {
        violations.push({ kind: "crashed", what: `${name} was not ready after ${readyTimeoutMs / 1_000} s` });
      });
    await Promise.all(system.apps.map(wait));
    signal.throwIfAborted();
  }

  return {
    system,
    /** Aborts when the run ends or must stop. */
    signal,
    /** What has been found so far. The run may add to it. */
    violations,
    seen: follower.seen,
    untilReady,
    tellProgress(describe: () => string): void {
      const tell = async () => {
        const elapsedS = Math.round((Date.now() - startedAt.getTime()) / 1_000);
        const size = (await queue.size()) ?? "?";
        say(`${String(elapsedS).padStart(5)} s  applied ${follower.seen.applied}  in the queue ${size}  ${describe()}`);
      };
      telling = repeat(tell, progressIntervalMs, signal);
    },
    /** Waits until all apps are ready and the queue is empty: see {@link watchQueue}. */
    async drain(standstillMs: number): Promise<void> {
      say("Waiting for the queue to become empty.");
      const drained = queue.untilEmpty(() => follower.seen.applied, standstillMs, signal);
      const [left] = await Promise.all([drained, untilReady()]);
      if (left !== undefined) violations.push({ kind: "stuck", what: left });
      await untilReady();
    },
    /** Compares what partners were told with what is in the database. */
    async report(posts: readonly Post[]): Promise<Report> {
      await follower.finish();
      const { tally, violations: found } = check({
        posts,
        database: await readDatabase(system.pool),
        followedChangeIds: follower.seen.changeIds,
        duplicateWindowMs: system.duplicateWindowMs,
      });
      return makeReport({ build: build.name, startedAt, tally, violations: [...violations, ...found] });
    },
    async end(): Promise<void> {
      ending.abort();
      await telling;
      await queue.close();
    },
  };
}

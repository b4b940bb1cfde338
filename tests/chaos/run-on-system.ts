import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness/wait-for";
import { repeat } from "@booking-events/runtime";
import { check, type Evidence, type Violation } from "./check.ts";
import { followDatabase } from "./follow-database.ts";
import type { Post } from "./post-events.ts";
import { readDatabase } from "./read-database.ts";
import { makeReport, type Report } from "./report.ts";
import { type System, type SystemOptions, startSystem } from "./start-system.ts";
import type { SupervisedApp } from "./supervise.ts";
import { QueueWatch } from "./watch-queue.ts";

export interface RunOptions extends Pick<SystemOptions, "build" | "say" | "signal"> {
  /** Keeps data and logs of a run that has not passed, and says where. */
  keepsEvidence: boolean;
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
    const run = new Run(system, violations, options);
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

/** What a run does with its system. */
export class Run {
  readonly system: System;
  /** Aborts when the run ends or must stop. */
  readonly signal: AbortSignal;
  /** What has been found so far. The run may add to it. */
  readonly violations: Violation[];
  readonly #options: RunOptions;
  readonly #startedAt = new Date();
  readonly #ending = new AbortController();
  readonly #queue: QueueWatch;
  readonly #follower: ReturnType<typeof followDatabase>;
  #telling: Promise<void> | undefined;

  constructor(system: System, violations: Violation[], options: RunOptions) {
    this.system = system;
    this.violations = violations;
    this.signal = AbortSignal.any([options.signal, this.#ending.signal]);
    this.#options = options;
    this.#queue = new QueueWatch(system.locateShards);
    this.#follower = followDatabase(system.pool, this.signal);
  }

  get seen() {
    return this.#follower.seen;
  }

  async untilReady(): Promise<void> {
    const waitOptions = { timeoutMs: readyTimeoutMs, intervalMs: readyPollMs };
    const wait = (app: SupervisedApp) =>
      waitFor(async () => this.signal.aborted || (await app.isReady()), waitOptions).catch(() => {
        const what = `${app.name} was not ready after ${readyTimeoutMs / 1_000} s`;
        this.violations.push({ kind: "crashed", what });
      });
    await Promise.all(this.system.apps.map(wait));
    this.signal.throwIfAborted();
  }

  tellProgress(describe: () => string): void {
    const tell = async () => {
      const elapsedS = String(Math.round((Date.now() - this.#startedAt.getTime()) / 1_000)).padStart(5);
      const size = (await this.#queue.size()) ?? "?";
      this.#options.say(`${elapsedS} s  applied ${this.seen.applied}  in the queue ${size}  ${describe()}`);
    };
    this.#telling = repeat(tell, progressIntervalMs, this.signal);
  }

  /** Waits until all apps are ready and the queue is empty: see {@link QueueWatch}. */
  async drain(standstillMs: number): Promise<void> {
    this.#options.say("Waiting for the queue to become empty.");
    const drained = this.#queue.untilEmpty(() => this.seen.applied, standstillMs, this.signal);
    const [left] = await Promise.all([drained, this.untilReady()]);
    if (left !== undefined) this.violations.push({ kind: "stuck", what: left });
    await this.untilReady();
  }

  /**
   * Compares what partners were told with what is in the database.
   *
   * @param operated names of the bookings that operators have erased, and what they wanted to put back. Default: none
   */
  async report(posts: readonly Post[], operated: Pick<Evidence, "erased" | "restores"> = {}): Promise<Report> {
    await this.#follower.finish();
    const { tally, violations } = check({
      posts,
      database: await readDatabase(this.system.pool),
      followedChangeIds: this.seen.changeIds,
      duplicateWindowMs: this.system.duplicateWindowMs,
      ...operated,
    });
    return makeReport({
      build: this.#options.build.name,
      startedAt: this.#startedAt,
      tally,
      violations: [...this.violations, ...violations],
    });
  }

  async end(): Promise<void> {
    this.#ending.abort();
    await this.#telling;
    await this.#queue.close();
  }
}

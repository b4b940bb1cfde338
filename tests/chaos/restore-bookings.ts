import { setTimeout as sleep } from "node:timers/promises";
import type { Violation } from "./check.ts";
import type { Restore } from "./check-restores.ts";
import type { Post } from "./post-events.ts";
import type { Random } from "./random.ts";
import type { Operate } from "./run-ops.ts";

const pauseMs = { least: 1_000, most: 4_000 };
const recentPosts = 300;
const referencesTogether = 12;
/** How far back the operator goes. */
const backMs = { least: 500, most: 15_000 };
/** Of the commands; most take about two seconds. */
const killedShare = 0.4;
const killedAfterMs = { least: 400, most: 2_500 };
const timeoutMs = 60_000;
/** When all faults are over. */
const lastAttempts = 5;

/**
 * Puts bookings back to what they were a while ago while partners still send events of them, as an operator does: a
 * command that failed or was killed is run again.
 */
export class Restores {
  readonly #operate: Operate;
  readonly #random: Random;
  readonly #resting = new AbortController();
  #restoring: Promise<void> | undefined;
  readonly all: Restore[] = [];
  /** How many commands were killed. */
  kills = 0;

  constructor(operate: Operate, random: Random) {
    this.#operate = operate;
    this.#random = random;
  }

  /** @param posts grows meanwhile */
  start(posts: readonly Post[], signal: AbortSignal): void {
    this.#restoring = this.#restoreSome(posts, AbortSignal.any([signal, this.#resting.signal]));
  }

  /** Waits for the command that runs. */
  async rest(): Promise<void> {
    this.#resting.abort();
    await this.#restoring;
  }

  /** Runs again what has not succeeded yet. The queue must be empty. */
  async finish(signal: AbortSignal): Promise<Violation[]> {
    const violations: Violation[] = [];
    for (const restore of this.all) {
      let printed = "";
      for (let attempt = 1; attempt <= lastAttempts && restore.done === null; attempt += 1)
        printed = await this.#restore(restore, signal);
      if (restore.done === null)
        violations.push({ kind: "wrong restore", what: `${restore.partner} could not be restored: ${printed}` });
    }
    return violations;
  }

  async #restoreSome(posts: readonly Post[], signal: AbortSignal): Promise<void> {
    const { between, chance } = this.#random;
    for (;;) {
      await sleep(between(pauseMs.least, pauseMs.most), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      const restore = this.all.find(({ done }) => done === null) ?? this.#want(posts.slice(-recentPosts));
      if (restore === undefined) continue;
      const isKilled = chance(killedShare);
      if (isKilled) this.kills += 1;
      const killAfterMs = isKilled ? Math.round(between(killedAfterMs.least, killedAfterMs.most)) : timeoutMs;
      await this.#restore(restore, AbortSignal.any([signal, AbortSignal.timeout(killAfterMs)]));
    }
  }

  #want(recent: Post[]): Restore | undefined {
    if (recent.length === 0) return undefined;
    const { between, chance, pick } = this.#random;
    const { partner } = pick(recent);
    const ofPartner = recent.filter((post) => post.partner === partner);
    const picked = Array.from({ length: referencesTogether }, () => pick(ofPartner).reference.replace("consumer ", ""));
    const restore: Restore = {
      partner,
      references: [...new Set(picked)],
      atMs: Date.now() - Math.round(between(backMs.least, backMs.most)),
      deleteNew: chance(0.5),
      done: null,
    };
    this.all.push(restore);
    return restore;
  }

  /** @returns what the command printed */
  async #restore(restore: Restore, signal: AbortSignal): Promise<string> {
    const { partner, references, atMs, deleteNew } = restore;
    const options = ["--at", new Date(atMs).toISOString(), ...(deleteNew ? ["--delete-new"] : []), "--yes", "--json"];
    const command = ["bookings", "restore", partner, ...references, ...options, "--by", "chaos"];
    const { exitCode, stdout, printed } = await this.#operate(command, signal);
    if (exitCode === 0) {
      const { readAt, bookings } = JSON.parse(stdout);
      restore.done = { readAtMs: Date.parse(readAt), bookings };
    }
    return printed;
  }
}

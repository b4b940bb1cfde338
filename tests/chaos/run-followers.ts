import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { fromSource, spawnApp } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import type pg from "pg";
import type { Random } from "./random.ts";

/** It writes each change into the table `handled`, in the transaction that moves the cursor. */
const program = fromSource("packages/feed/src/testing/follow-and-count.ts");
const cursorName = "chaos";
const aliveMs = { least: 500, most: 5_000 };
/** Followers that are killed often fall behind, and may need minutes to come to the end. They must go on. */
const noProgressMs = 60_000;
const lookIntervalMs = 200;

/** Two followers of the feed, one of which is killed again and again. Both end when the signal aborts. */
export class Followers {
  #program: readonly string[] = program;
  readonly #databaseUrl: string;
  readonly #pool: pg.Pool;
  readonly #stopping = new AbortController();
  #followers: ChildProcess[] = [];
  #kills = 0;
  #killing: Promise<void> | undefined;

  constructor(databaseUrl: string, pool: pg.Pool) {
    this.#databaseUrl = databaseUrl;
    this.#pool = pool;
  }

  async start(random: Random, signal: AbortSignal): Promise<void> {
    await this.#pool.query(
      "create table handled (change_id bigint, process bigint, place bigint generated always as identity)",
    );
    this.#program = await bundleProgram(program);
    this.#followers = [this.#spawn(), this.#spawn()];
    this.#killing = this.#killSome(random, AbortSignal.any([signal, this.#stopping.signal]));
    signal.addEventListener("abort", () => void Promise.all(this.#followers.map(kill)), { once: true });
  }

  /** From now on, none is killed. */
  async rest(): Promise<void> {
    this.#stopping.abort();
    await this.#killing;
  }

  /** @returns what is wrong with the changes that they have handled, after they have handled the last one */
  async finish(): Promise<string[]> {
    await this.rest();
    const isAtEnd = await this.#comeToTheEnd();
    await Promise.all(this.#followers.map(kill));
    if (!isAtEnd) return [`after ${this.#kills} kills, followers no longer go on to the end of the feed`];
    const { rows } = await this.#pool.query<{ isSame: boolean }>(
      `select array(select change_id from handled order by place) = array(select id from booking_changes order by id)
         as "isSame"`,
    );
    return rows[0]?.isSame === true ? [] : [`after ${this.#kills} kills, followers have not handled each change once`];
  }

  #spawn(): ChildProcess {
    return spawnApp([...this.#program, this.#databaseUrl, cursorName], {}, { stdio: "ignore" });
  }

  async #killSome(random: Random, signal: AbortSignal): Promise<void> {
    for (;;) {
      await sleep(random.between(aliveMs.least, aliveMs.most), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      const victim = this.#followers.shift();
      if (victim !== undefined) await kill(victim);
      this.#kills += 1;
      if (!signal.aborted) this.#followers.push(this.#spawn());
    }
  }

  /** @returns false if they have stopped before the end */
  async #comeToTheEnd(): Promise<boolean> {
    let handled: number | null = null;
    let movedAtMs = performance.now();
    while (performance.now() < movedAtMs + noProgressMs) {
      // On a busy machine, PostgreSQL may not accept a connection in time.
      const cursor = await this.#readCursor().catch(() => ({ handled, last: undefined }));
      if (cursor.handled === cursor.last) return true;
      if (cursor.handled !== handled) movedAtMs = performance.now();
      handled = cursor.handled;
      await sleep(lookIntervalMs);
    }
    return false;
  }

  async #readCursor(): Promise<{ handled: number | null; last: number }> {
    const { rows } = await this.#pool.query<{ handled: number | null; last: number }>(
      `select feed_readers.last_id as handled, feed_position.last_id as last
       from feed_position left join feed_readers on name = $1`,
      [cursorName],
    );
    return rows[0] ?? { handled: null, last: 0 };
  }
}

async function kill(follower: ChildProcess): Promise<void> {
  if (follower.exitCode !== null || follower.signalCode !== null) return;
  const ended = once(follower, "exit");
  follower.kill("SIGKILL");
  await ended;
}

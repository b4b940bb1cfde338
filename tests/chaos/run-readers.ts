import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { spawnApp } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { resetFeedReader } from "@booking-events/store";
import type pg from "pg";
import type { Violation } from "./check.ts";
import { createRandom, type Random } from "./random.ts";

const names = ["copy-1", "copy-2"] as const;
type Name = (typeof names)[number];
const startsOverInTheEnd: Name = "copy-2";
const runningMs = { least: 500, most: 5_000 };
/** Meanwhile it falls behind. */
const stoppedMs = { least: 500, most: 6_000 };
const stopTimeoutMs = 10_000;
/** After an outage it goes on by itself, after pauses of up to 10 s. */
const noProgressMs = 60_000;
const lookIntervalMs = 200;
/** Erased while all readers are stopped. */
const lastGuests = 3;

/** A booking that an operator can erase. */
export interface Guest {
  partner: string;
  reference: string;
}

/**
 * Programs that keep a copy of all active bookings. Each is stopped or killed again and again, falls behind, and goes on
 * or starts over from a snapshot.
 */
export class Readers {
  #program: readonly string[];
  readonly #databaseUrl: string;
  readonly #pool: pg.Pool;
  readonly #running = new Map<Name, ChildProcess>();
  readonly #violations: Violation[] = [];
  readonly #resting = new AbortController();
  #moving: Promise<unknown> | undefined;
  /** How often readers have been stopped. */
  stops = 0;
  /** How often a reader has started over, after it was reset. */
  resets = 0;

  constructor(program: readonly string[], databaseUrl: string, pool: pg.Pool) {
    this.#program = program;
    this.#databaseUrl = databaseUrl;
    this.#pool = pool;
  }

  async start(seed: number, signal: AbortSignal): Promise<void> {
    await this.#pool.query(
      `create table copies (reader text, booking_id uuid, partner text, reference_kind text, reference text,
         payload jsonb, primary key (reader, booking_id))`,
    );
    this.#program = await bundleProgram(this.#program);
    for (const name of names) this.#spawn(name);
    const resting = AbortSignal.any([signal, this.#resting.signal]);
    this.#moving = Promise.all(
      names.map((name) => this.#stopAndGoOn(name, createRandom(seed, `reader ${name}`), resting)),
    );
    signal.addEventListener("abort", () => void Promise.all(names.map((name) => this.#stop(name, "SIGKILL"))), {
      once: true,
    });
  }

  /**
   * Stops all of them when they have come to the end of the feed.
   *
   * @returns guests of which the one that will start over has a copy
   * @throws if it has none, and so the run could prove nothing
   */
  async rest(): Promise<Guest[]> {
    this.#resting.abort();
    await this.#moving;
    for (const name of names) if (!this.#running.has(name)) this.#spawn(name);
    await this.#comeToTheEnd();
    const { rows } = await this.#pool.query<Guest>(
      `select copies.partner, copies.reference from copies join bookings using (booking_id)
       where reader = $1 and state = 'active' order by booking_id limit $2`,
      [startsOverInTheEnd, lastGuests],
    );
    if (rows.length === 0) throw new Error("A reader had no copy in the end: this run proves nothing.");
    return rows;
  }

  /** @returns what is wrong with the copies when all readers have come to the end of the feed, one of them again */
  async finish(): Promise<Violation[]> {
    await resetFeedReader(this.#pool, startsOverInTheEnd);
    this.resets += 1;
    for (const name of names) this.#spawn(name);
    await this.#comeToTheEnd();
    for (const name of names) this.#violations.push(...(await this.#compare(name)));
    return this.#violations;
  }

  #spawn(name: Name): void {
    this.#running.set(name, spawnApp([...this.#program, this.#databaseUrl, name], {}, { stdio: "ignore" }));
  }

  async #stopAndGoOn(name: Name, random: Random, signal: AbortSignal): Promise<void> {
    const pause = ({ least, most }: typeof runningMs) =>
      sleep(random.between(least, most), undefined, { signal }).catch(() => {});
    for (;;) {
      await pause(runningMs);
      if (signal.aborted) return;
      await this.#stop(name, random.pick(["SIGTERM", "SIGKILL"]));
      this.stops += 1;
      await pause(stoppedMs);
      const startsOver = random.chance(0.4);
      if (signal.aborted) return;
      // PostgreSQL may be down.
      if (startsOver && (await resetFeedReader(this.#pool, name).catch(() => false))) this.resets += 1;
      this.#spawn(name);
    }
  }

  async #stop(name: Name, signal: NodeJS.Signals): Promise<void> {
    const child = this.#running.get(name);
    if (child === undefined) return;
    this.#running.delete(name);
    if (child.exitCode !== null || child.signalCode !== null)
      return this.#report(`the reader ${name} ended by itself (${child.signalCode ?? `exit code ${child.exitCode}`})`);
    const ended = once(child, "exit");
    child.kill(signal);
    const tooLong = setTimeout(() => {
      this.#report(`the reader ${name} did not end within ${stopTimeoutMs / 1_000} s of SIGTERM`);
      child.kill("SIGKILL");
    }, stopTimeoutMs);
    await ended;
    clearTimeout(tooLong);
  }

  #report(what: string): void {
    this.#violations.push({ kind: "wrong feed", what });
  }

  async #comeToTheEnd(): Promise<void> {
    for (const name of names) {
      if (!(await this.#isAtEnd(name))) this.#report(`the reader ${name} no longer goes on to the end of the feed`);
      await this.#stop(name, "SIGTERM");
    }
  }

  /** @returns false if it has stopped before the end */
  async #isAtEnd(name: Name): Promise<boolean> {
    let place = "";
    let movedAtMs = performance.now();
    while (performance.now() < movedAtMs + noProgressMs) {
      const { rows } = await this.#pool.query<{ place: string; isAtEnd: boolean }>(
        `select concat(reader.last_id, ' ', snapshot_after) as place,
           (reader.last_id = position.last_id and snapshot_after is null) is true as "isAtEnd"
         from feed_position as position join feed_readers as reader on name = $1`,
        [name],
      );
      if (rows[0]?.isAtEnd) return true;
      if (rows[0]?.place !== place) movedAtMs = performance.now();
      place = rows[0]?.place ?? "";
      await sleep(lookIntervalMs);
    }
    return false;
  }

  async #compare(name: Name): Promise<Violation[]> {
    const { rows } = await this.#pool.query<{ id: string; isKept: boolean; isErased: boolean; state: string | null }>(
      `select booking_id as id, copy.booking_id is not null as "isKept", booking.state,
         booking.erased_at is not null as "isErased"
       from (select * from copies where reader = $1) as copy
       full join bookings as booking using (booking_id)
       where case when booking.state = 'active' then booking.payload end is distinct from copy.payload`,
      [name],
    );
    return rows.map(({ id, isKept, isErased, state }) =>
      isErased
        ? { kind: "guest stays", what: `the reader ${name} has a copy of ${id}, which was erased` }
        : { kind: "wrong feed", what: `the reader ${name} has ${isKept ? "a wrong" : "no"} copy of ${id} (${state})` },
    );
  }
}

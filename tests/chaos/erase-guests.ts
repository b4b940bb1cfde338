import { setTimeout as sleep } from "node:timers/promises";
import type pg from "pg";
import type { Violation } from "./check.ts";
import { nameBooking } from "./oracle.ts";
import type { Post } from "./post-events.ts";
import type { Random } from "./random.ts";
import type { Operate } from "./run-ops.ts";
import type { Guest } from "./run-readers.ts";

const pauseMs = { least: 2_000, most: 6_000 };
const recentPosts = 500;
/** Of the commands; most take about a second. */
const killedShare = 0.25;
const killedAfterMs = { least: 200, most: 1_500 };
const timeoutMs = 60_000;
/** When all faults are over. */
const lastAttempts = 5;

/**
 * Erases guests while partners still send events of them, as an operator does: a command that failed or was killed is
 * run again.
 */
export class Erasures {
  readonly #operate: Operate;
  readonly #random: Random;
  readonly #guests = new Map<string, Guest>();
  /** Names of guests whose erasure has not succeeded yet. */
  readonly #left = new Set<string>();
  readonly #resting = new AbortController();
  #erasing: Promise<void> | undefined;
  /** How many commands were killed. */
  kills = 0;

  constructor(operate: Operate, random: Random) {
    this.#operate = operate;
    this.#random = random;
  }

  /** How many guests have been erased, or will be by the end of `finish`. */
  get guests(): number {
    return this.#guests.size;
  }

  /** Names of all bookings of the guests. The same reference may be that of a trip and that of a consumer. */
  get names(): ReadonlySet<string> {
    return new Set(
      [...this.#guests.values()].flatMap(({ partner, reference }) => [
        nameBooking({ partner, reference }),
        nameBooking({ partner, reference: `${consumerPrefix}${reference}` }),
      ]),
    );
  }

  /** @param posts grows meanwhile */
  start(posts: readonly Post[], signal: AbortSignal): void {
    const stopping = AbortSignal.any([signal, this.#resting.signal]);
    this.#erasing = this.#eraseSome(posts, stopping);
  }

  /** Waits for the command that runs. */
  async rest(): Promise<void> {
    this.#resting.abort();
    await this.#erasing;
  }

  /** Erases these guests too, and all whose erasure has not succeeded yet. The queue must be empty. */
  async finish(last: readonly Guest[], pool: pg.Pool, signal: AbortSignal): Promise<Violation[]> {
    for (const guest of last) this.#add(guest);
    // Of those who were erased before, a booking may have been stored for the first time since.
    const { rows } = await pool.query<Guest>(
      "select distinct partner, reference from bookings where erased_at is null",
    );
    for (const guest of rows) if (this.#guests.has(nameBooking(guest))) this.#add(guest);
    let printed = "";
    for (let attempt = 1; attempt <= lastAttempts && this.#left.size > 0; attempt += 1)
      for (const name of [...this.#left]) printed = await this.#erase(name, signal);
    return [...this.#left].map((name) => ({ kind: "guest stays", what: `${name} could not be erased: ${printed}` }));
  }

  async #eraseSome(posts: readonly Post[], signal: AbortSignal): Promise<void> {
    const { between, chance, pick } = this.#random;
    for (;;) {
      await sleep(between(pauseMs.least, pauseMs.most), undefined, { signal }).catch(() => {});
      if (signal.aborted) return;
      const [unfinished] = this.#left;
      const recent = posts.slice(-recentPosts);
      if (unfinished === undefined && recent.length === 0) continue;
      const name = unfinished ?? this.#add(toGuest(pick(recent)));
      const isKilled = chance(killedShare);
      if (isKilled) this.kills += 1;
      const killAfterMs = isKilled ? Math.round(between(killedAfterMs.least, killedAfterMs.most)) : timeoutMs;
      await this.#erase(name, AbortSignal.any([signal, AbortSignal.timeout(killAfterMs)]));
    }
  }

  #add(guest: Guest): string {
    const name = nameBooking(guest);
    this.#guests.set(name, guest);
    this.#left.add(name);
    return name;
  }

  /** @returns what the command printed */
  async #erase(name: string, signal: AbortSignal): Promise<string> {
    const { partner = "", reference = "" } = this.#guests.get(name) ?? {};
    const which = ["--partner", partner, "--reference", reference];
    const command = ["guests", "erase", ...which, "--reason", "chaos", "--by", "chaos", "--yes"];
    const { exitCode, printed } = await this.#operate(command, signal);
    if (exitCode === 0) this.#left.delete(name);
    return printed;
  }
}

const consumerPrefix = "consumer ";

function toGuest({ partner, reference }: Post): Guest {
  return { partner, reference: reference.replace(consumerPrefix, "") };
}

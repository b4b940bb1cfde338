import { setTimeout as sleep } from "node:timers/promises";
import type { NumberedEvent } from "@booking-events/queue";
import { findProcessed, listDeadLetters } from "@booking-events/store";
import type { Pool } from "../context.ts";
import type { QueueingProgress, QueueWhenRoom } from "../queue/queue-events.ts";

/** What has become of the events of a restore. */
export interface RestoreResults {
  queued: number;
  applied: number;
  /** A partner's newer event was applied first, and decides. */
  superseded: number;
  /** Of bookings that were erased meanwhile. */
  erased: number;
  dead: number;
  /** Not applied yet when the command ended. */
  waiting: number;
}

/** As long as workers apply some of the events, the rest is waited for. */
const patienceMs = 30_000;
const pollIntervalMs = 200;
const eventsTogether = 500;

/** Queues the events of a restore when there is room, and finds out what becomes of them. */
export class RestoreRun {
  readonly #pool: Pool;
  readonly #queue: QueueWhenRoom;
  readonly #results: RestoreResults = { queued: 0, applied: 0, superseded: 0, erased: 0, dead: 0, waiting: 0 };
  #waiting: string[] = [];

  constructor(pool: Pool, queue: QueueWhenRoom) {
    this.#pool = pool;
    this.#queue = queue;
  }

  async queue(events: NumberedEvent[], progress: QueueingProgress): Promise<void> {
    if (events.length === 0) return;
    await this.#queue(events, progress);
    this.#results.queued += events.length;
    for (const { eventId } of events) this.#waiting.push(eventId);
  }

  /** @param signal ends the wait: everything is queued by then */
  async waitForResults(signal: AbortSignal | undefined): Promise<RestoreResults> {
    let giveUpAtMs = Date.now() + patienceMs;
    while (this.#waiting.length > 0 && Date.now() < giveUpAtMs && signal?.aborted !== true) {
      const before = this.#waiting.length;
      await this.#lookForResults();
      if (this.#waiting.length < before) giveUpAtMs = Date.now() + patienceMs;
      else await sleep(pollIntervalMs);
    }
    return { ...this.#results, waiting: this.#waiting.length };
  }

  /** Of the events that were queued first. They are applied first. */
  async #lookForResults(): Promise<void> {
    const eventIds = this.#waiting.slice(0, eventsTogether);
    const outcomes = await findProcessed(this.#pool, eventIds);
    const letters = await listDeadLetters(this.#pool, { eventIds });
    const dead = new Set(letters.map(({ eventId }) => eventId).filter((id) => !outcomes.has(id)));
    for (const outcome of outcomes.values()) {
      if (outcome === "superseded") this.#results.superseded += 1;
      else if (outcome === "erased") this.#results.erased += 1;
      else this.#results.applied += 1;
    }
    this.#results.dead += dead.size;
    const left = eventIds.filter((id) => !outcomes.has(id) && !dead.has(id));
    this.#waiting = [...left, ...this.#waiting.slice(eventIds.length)];
  }
}

import { listQueuedEvents, type ShardedQueue } from "@booking-events/queue";
import { Gauge, type Registry } from "@booking-events/runtime";
import { arrivalWindowMs, countArrivals, findWaitingArrivals, toWaitingWord, waitsLong } from "@booking-events/store";
import type { Pool } from "pg";

/** It reads the bookings of all guests who arrive, some thousands, and events that have waited for longest. */
export const arrivalsIntervalMs = 60_000;
/** Of each list of the queue. */
const maxQueued = 500;

/** Counts the guests who arrive soon. In an outage, the last figures stay. */
export class ArrivalsWatch {
  readonly #pool: Pool;
  readonly #queue: ShardedQueue;
  readonly #arriving: Gauge;
  readonly #unresolved: Gauge<"reason">;

  constructor({ pool, queue, metrics }: { pool: Pool; queue: ShardedQueue; metrics: Registry }) {
    this.#pool = pool;
    this.#queue = queue;
    const registers = [metrics];
    this.#arriving = new Gauge({
      name: "booking_events_arrivals",
      help: "Guests who arrive within 48 hours. NaN before the first count. All workers count the same.",
      registers,
    });
    this.#arriving.set(Number.NaN);
    this.#unresolved = new Gauge({
      name: "booking_events_arrivals_unresolved",
      help: "Guests who arrive within 48 hours and of whom something is unresolved: dead, waiting for over a minute, or an unreadable contact.",
      labelNames: ["reason"],
      registers,
    });
  }

  /** The queue is read first: an event leaves it only after PostgreSQL has it. */
  async look(now: Date = new Date()): Promise<void> {
    const window = { now, until: new Date(now.getTime() + arrivalWindowMs) };
    const { events: words } = await listQueuedEvents({ ...this.#queue, limit: maxQueued }, ({ envelope }) =>
      envelope === null ? [] : [toWaitingWord(envelope)].filter((word) => waitsLong(word, now)),
    );
    const waiting = await findWaitingArrivals(this.#pool, window, words);
    const { arriving, dead, unreadable } = await countArrivals(this.#pool, window);
    this.#arriving.set(arriving);
    for (const [reason, count] of Object.entries({ dead, waiting: waiting.length, unreadable }))
      this.#unresolved.set({ reason }, count);
  }
}

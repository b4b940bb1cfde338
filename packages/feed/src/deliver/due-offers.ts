import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "../tables.ts";
import { type DueDelivery, findDue, type Progress } from "./deliveries.ts";
import { DueClock } from "./due-clock.ts";
import type { ActiveConsumer } from "./host.ts";

/** Deliveries that are due and wait for their turn, of each consumer. */
const maxDue = 50;
const dueIntervalMs = 1_000;

interface Parts {
  tables: FeedTables;
  active: ReadonlyMap<string, ActiveConsumer>;
  /** Waits out outages, until the signal aborts. */
  read: <Result>(work: (client: Queryable) => Promise<Result>, signal: AbortSignal) => Promise<Result>;
}

/** Looks for deliveries that wait for another attempt, of all consumers together, and offers those that are due. */
export class DueOffers {
  readonly #parts: Parts;
  readonly #clock = new DueClock(0);
  /** How often deliveries were recorded that wait. */
  #waitingRecorded = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#clock.wait(signal);
      if (signal.aborted) return;
      const consumers = [...this.#parts.active.values()].filter(({ hasWaiting }) => hasWaiting);
      if (consumers.length > 0) await this.#offerTo(consumers, signal);
    }
  }

  /** Some may be due now. */
  look(): void {
    this.#clock.comeBy(0);
  }

  /** A delivery of the consumer that waits was recorded, and is due. */
  noteDue(consumer: ActiveConsumer): void {
    consumer.hasWaiting = true;
    this.#waitingRecorded += 1;
    this.look();
  }

  noteRecorded(progress: Progress[]): void {
    const pauses = progress.flatMap(({ rows }) => rows.flatMap(({ waiting }) => waiting?.pauseMs ?? []));
    if (pauses.length === 0) return;
    this.#waitingRecorded += 1;
    this.#clock.comeBy(Math.min(...pauses));
  }

  async #offerTo(consumers: ActiveConsumer[], signal: AbortSignal): Promise<void> {
    const { read, tables } = this.#parts;
    const recorded = this.#waitingRecorded;
    const names = consumers.map(({ name }) => name);
    const found = await read((client) => findDue(client, tables, { names, limit: maxDue }), signal);
    const byName = new Map<string, DueDelivery[]>(names.map((name) => [name, []]));
    for (const one of found) byName.get(one.name)?.push(one);
    for (const consumer of consumers) {
      const waiting = byName.get(consumer.name) ?? [];
      if (waiting.length === 0 && recorded === this.#waitingRecorded) consumer.hasWaiting = false;
      const due = waiting.filter(({ dueInMs }) => dueInMs <= 0);
      consumer.offer(due);
      if (due.length > 0) this.#clock.comeBy(dueIntervalMs);
      for (const { dueInMs } of waiting) if (dueInMs > 0) this.#clock.comeBy(dueInMs);
    }
  }
}

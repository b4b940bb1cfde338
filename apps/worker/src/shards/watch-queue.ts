import { type Consumer, describeOtherDatabase, type QueueRecord } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";
import { withDeadline } from "@booking-events/runtime";
import { ReportedProblems } from "../watch/reported-problems.ts";

/** A shard as this file needs it. */
interface WatchedShard {
  consumer: { record: Consumer["record"] };
  /** Lets the worker take events of the shard. */
  open(database: string): void;
  /** Lets the worker take no more. */
  close(): void;
}

export const recordIntervalMs = 1_000;

/**
 * Lets the worker take events only while the queue feeds this worker's database, and keeps the shards' copies of the
 * queue's record as the record is. So a pause holds for shards that are added while the queue is paused, and ends in all.
 *
 * Two environments with the same Redis and prefix would take each other's events. The queue's first worker records its
 * database, and workers of others refuse to work. The script that takes events checks the record once more.
 */
export class QueueWatch<Shard extends WatchedShard> {
  readonly #shards: () => ReadonlyMap<number, Shard>;
  readonly #database: () => string;
  readonly #isEmpty: () => Promise<boolean>;
  /** That the queue feeds another database. The worker is not ready. */
  readonly #refusal: ReportedProblems;
  /** That an operator has paused the queue. The worker is still ready: a restart would not help. */
  readonly #pause: ReportedProblems;
  /** The other database that was recorded. If Redis has lost its data since then, workers of that one record it again. */
  #other: string | null = null;
  #reported: string | null = null;
  #looking: Promise<void> | null = null;
  #hasLooked = false;

  constructor(parts: {
    shards: () => ReadonlyMap<number, Shard>;
    /** Returns the database's id. */
    database: () => string;
    /** Whether no event has been applied to it. */
    isEmpty: () => Promise<boolean>;
    logger: Logger;
  }) {
    this.#shards = parts.shards;
    this.#database = parts.database;
    this.#isEmpty = parts.isEmpty;
    this.#refusal = new ReportedProblems(([problem]) => {
      if (problem === undefined) parts.logger.info("the queue feeds this database: taking events");
      else parts.logger.error(`${problem}. No event is taken.`);
    });
    this.#pause = new ReportedProblems((problems) => {
      if (problems.length === 0) parts.logger.info("the queue is resumed");
      else parts.logger.warn("the queue is paused: no events are taken until it is resumed");
    });
  }

  /** Whether it is known which database the queue feeds. */
  get hasLooked(): boolean {
    return this.#hasLooked;
  }

  /** Why the worker takes no events, in sentences for an operator. */
  get problems(): readonly string[] {
    return this.#refusal.current;
  }

  get warnings(): readonly string[] {
    return this.#pause.current;
  }

  /** The worker calls this every {@link recordIntervalMs}. @throws if no shard answers */
  look(): Promise<void> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<void> {
    const shards = this.#shards();
    // First the copies: who changes the record begins with shard 0. So a copy that differs from the record is old.
    const copies = new Map<number, QueueRecord>();
    const reading = [...shards]
      .filter(([shard]) => shard !== 0)
      .map(async ([shard, { consumer }]) => {
        copies.set(shard, await withDeadline(consumer.record.read(), recordIntervalMs));
      });
    await Promise.allSettled(reading);
    const record = await this.#readRecord(shards.get(0), [...copies.values()]).catch(() => null);
    if (record === null && copies.size === 0) throw new Error("No shard of the queue answers.");
    const { database, isPaused } = record ?? merge([...copies.values()]);
    if (database !== null) this.#other = database === this.#database() ? null : database;
    await Promise.all(
      Array.from(shards, async ([number, shard]) => {
        if (this.#other !== null) shard.close();
        else if (number === 0 ? record !== null : await this.#update(shard, copies.get(number), record))
          shard.open(this.#database());
      }),
    );
    this.#pause.report(isPaused ? [paused] : []);
    await this.#reportOther();
    this.#hasLooked = true;
  }

  async #reportOther(): Promise<void> {
    if (this.#other === this.#reported) return;
    this.#reported = this.#other;
    if (this.#other === null) return this.#refusal.report([]);
    const isEmpty = await withDeadline(this.#isEmpty(), recordIntervalMs).catch(() => false);
    this.#refusal.report([describeOtherDatabase(this.#other, { id: this.#database(), isEmpty })]);
  }

  /** If there is no record yet, it becomes what the copies have, or this worker's database. */
  async #readRecord(first: Shard | undefined, copies: QueueRecord[]): Promise<QueueRecord> {
    if (first === undefined) throw new Error("Every queue has shard 0.");
    const { record } = first.consumer;
    const found = await withDeadline(record.read(), recordIntervalMs);
    if (found.database !== null) return found;
    const id = this.#database();
    // Copies with a database were made from a record: the Redis of shard 0 has lost it.
    const lost = merge(copies.filter((copy) => copy.database !== null));
    if (this.#other !== null || (lost.database !== null && lost.database !== id)) return lost;
    if (lost.isPaused) await record.change({ isPaused: true });
    const database = await withDeadline(record.claim(id), recordIntervalMs);
    return { database, isPaused: found.isPaused || lost.isPaused };
  }

  /**
   * Makes a shard's copy what the record is.
   *
   * @param record null: unknown, since shard 0 does not answer
   * @returns whether events may be taken of the shard
   */
  async #update(shard: Shard, copy: QueueRecord | undefined, record: QueueRecord | null): Promise<boolean> {
    if (copy === undefined) return false;
    if (record === null) return copy.database !== null;
    if (copy.database === record.database && copy.isPaused === record.isPaused) return true;
    return withDeadline(shard.consumer.record.change(record), recordIntervalMs).then(
      () => true,
      () => false,
    );
  }
}

const paused = "An operator has paused the queue: events wait in Redis. To go on: ops queue resume";

/** What the copies say together. */
function merge(copies: QueueRecord[]): QueueRecord {
  return {
    database: copies.find(({ database }) => database !== null)?.database ?? null,
    isPaused: copies.some(({ isPaused }) => isPaused),
  };
}

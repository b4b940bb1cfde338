import { type Consumer, formatShards, type HoldLimits, shardNumbers } from "@booking-events/queue";
import { type Logger, withDeadline } from "@booking-events/runtime";

export interface ServedShard {
  consumer: Pick<Consumer, "limitTo" | "isEmpty" | "readShardCounts" | "forgetShardCount" | "close">;
  /** Starts what is done regularly, and lets events be taken. */
  start(): void;
  /** Ends both. Resolves when no event is held. */
  drain(): Promise<void>;
}

interface ShardOptions<Served> {
  /** How many shards are configured. Senders may have recorded more. */
  shardCount: number;
  /** Of all shards together. */
  limits: HoldLimits;
  open: (shard: number, limits: HoldLimits) => Served;
  logger: Logger;
}

/** How often the worker looks for shards that were added, and that nobody uses any more. */
export const shardIntervalMs = 5_000;
/** A shard whose Redis does not answer must not delay the others. */
const answerLimitMs = 2_000;

/**
 * Serves the shards of the queue. Each has a consumer with a part of the worker's slots, so that events of one shard that
 * cannot be finished never take the slots of another.
 */
export class ShardService<Served extends ServedShard> {
  readonly #options: ShardOptions<Served>;
  readonly #served = new Map<number, Served>();
  #isStarted = false;
  #isStopping = false;

  constructor(options: ShardOptions<Served>) {
    this.#options = options;
    this.#add(shardNumbers(options.shardCount));
  }

  current(): ReadonlyMap<number, Served> {
    return this.#served;
  }

  /** Starts to take events of the shards, and of those that are added later. */
  start(): void {
    this.#isStarted = true;
    for (const served of this.#served.values()) served.start();
  }

  /**
   * Adds shards that senders use, and closes those that nobody uses and that are empty. The worker calls this every
   * {@link shardIntervalMs}.
   *
   * @throws if Redis does not answer in time. The next call tries again
   */
  async adjust(): Promise<void> {
    const { shardCount } = this.#options;
    const recorder = this.#served.get(0)?.consumer;
    if (recorder === undefined) return;
    const recorded = await withDeadline(recorder.readShardCounts(), answerLimitMs);
    if (this.#isStopping) return;
    const [largest = shardCount, next = shardCount] = [...recorded, shardCount].toSorted((a, b) => b - a);
    this.#add(shardNumbers(largest));
    const unused = [...this.#served.keys()].filter((shard) => shard >= largest);
    if (await this.#areEmpty(unused)) await this.#remove(unused);
    if (largest === shardCount) return;
    const inNoSmallerQueue = [...this.#served.keys()].filter((shard) => shard >= next);
    if (await this.#areEmpty(inNoSmallerQueue)) await withDeadline(recorder.forgetShardCount(largest), answerLimitMs);
  }

  /** Resolves when no shard holds an event. There is no time limit; the caller sets one. */
  async drain(): Promise<void> {
    this.#isStopping = true;
    await Promise.allSettled(Array.from(this.#served.values(), (served) => served.drain()));
  }

  async close(): Promise<void> {
    this.#isStopping = true;
    await Promise.allSettled(Array.from(this.#served.values(), ({ consumer }) => consumer.close()));
  }

  #add(wanted: number[]): void {
    const { limits, open, logger } = this.#options;
    const added = wanted.filter((shard) => !this.#served.has(shard));
    if (added.length === 0) return;
    const share = divide(limits, this.#served.size + added.length);
    for (const { consumer } of this.#served.values()) consumer.limitTo(share);
    for (const shard of added) {
      const served = open(shard, share);
      this.#served.set(shard, served);
      if (this.#isStarted) served.start();
    }
    if (this.#isStarted) logger.info({ shards: formatShards(added) }, "takes events of more shards");
  }

  async #areEmpty(shards: number[]): Promise<boolean> {
    const looks = shards.map((shard) => this.#served.get(shard)?.consumer.isEmpty());
    return (await withDeadline(Promise.all(looks), answerLimitMs)).every(Boolean);
  }

  async #remove(shards: number[]): Promise<void> {
    if (shards.length === 0) return;
    const closing = shards.flatMap((shard) => this.#served.get(shard) ?? []);
    for (const shard of shards) this.#served.delete(shard);
    const share = divide(this.#options.limits, this.#served.size);
    for (const { consumer } of this.#served.values()) consumer.limitTo(share);
    this.#options.logger.info({ shards: formatShards(shards) }, "takes no more events of shards that nobody uses");
    await Promise.allSettled(closing.map((served) => withDeadline(served.drain(), answerLimitMs)));
    await Promise.allSettled(closing.map(({ consumer }) => withDeadline(consumer.close(), answerLimitMs)));
  }
}

/** With more shards than slots, each shard has one. */
function divide({ concurrency, maxHeldBytes }: HoldLimits, shards: number): HoldLimits {
  return {
    concurrency: Math.max(1, Math.floor(concurrency / shards)),
    maxHeldBytes: Math.max(1, Math.floor(maxHeldBytes / shards)),
  };
}

import type { Consumer, HoldLimits } from "@booking-events/queue";
import { formatShards, shardNumbers } from "@booking-events/queue";
import { type Logger, withDeadline } from "@booking-events/runtime";

/** What a worker runs for one shard. */
export interface ServedShard {
  consumer: Pick<
    Consumer,
    "start" | "limitTo" | "isEmpty" | "readShardCounts" | "forgetShardCount" | "drain" | "close"
  >;
  /** Starts what is done regularly, until the shard is closed. */
  startWatches(signal: AbortSignal): void;
}

export interface ShardService<Served extends ServedShard> {
  /** The shards that are served at the moment. */
  current(): ReadonlyMap<number, Served>;
  /** Starts to take events of the shards, and of those that are added later. */
  start(): void;
  /**
   * Adds shards that senders use, and closes those that nobody uses and that are empty. The worker calls this every
   * {@link lookForShardsIntervalMs}.
   *
   * @throws if Redis does not answer in time. The next look tries again
   */
  look(): Promise<void>;
  /** Resolves when no shard holds an event. There is no time limit; the caller sets one. */
  drain(): Promise<void>;
  close(): Promise<void>;
}

export const lookForShardsIntervalMs = 5_000;
/** A shard whose Redis does not answer must not delay the others. */
const answerLimitMs = 2_000;

/**
 * Serves the shards of the queue. Each has a consumer with a part of the worker's slots, so that events of one shard that
 * cannot be finished never take the slots of another.
 *
 * @param options.shardCount how many shards are configured. Senders may have recorded more
 * @param options.limits of all shards together
 */
export function serveShards<Served extends ServedShard>(options: {
  shardCount: number;
  limits: HoldLimits;
  open: (shard: number, limits: HoldLimits) => Served;
  logger: Logger;
}): ShardService<Served> {
  const { shardCount, limits, open, logger } = options;
  const served = new Map<number, Served>();
  const watching = new Map<number, AbortController>();
  let isStarted = false;
  let isStopping = false;

  function setUp(wanted: number[]): void {
    const added = wanted.filter((shard) => !served.has(shard));
    if (added.length === 0) return;
    const share = divide(limits, served.size + added.length);
    for (const { consumer } of served.values()) consumer.limitTo(share);
    for (const shard of added) {
      served.set(shard, open(shard, share));
      if (isStarted) startOne(shard);
    }
    if (isStarted) logger.info({ shards: formatShards(added) }, "takes events of more shards");
  }

  function startOne(shard: number): void {
    const each = served.get(shard);
    const watches = new AbortController();
    watching.set(shard, watches);
    each?.consumer.start();
    each?.startWatches(watches.signal);
  }

  async function areEmpty(shards: number[]): Promise<boolean> {
    const looks = shards.map((shard) => served.get(shard)?.consumer.isEmpty());
    return (await withDeadline(Promise.all(looks), answerLimitMs)).every(Boolean);
  }

  async function takeDown(shards: number[]): Promise<void> {
    if (shards.length === 0) return;
    const closing = shards.flatMap((shard) => served.get(shard)?.consumer ?? []);
    for (const shard of shards) {
      watching.get(shard)?.abort();
      watching.delete(shard);
      served.delete(shard);
    }
    for (const { consumer } of served.values()) consumer.limitTo(divide(limits, served.size));
    logger.info({ shards: formatShards(shards) }, "takes no more events of shards that nobody uses");
    await Promise.allSettled(closing.map((consumer) => withDeadline(consumer.drain(), answerLimitMs)));
    await Promise.allSettled(closing.map((consumer) => withDeadline(consumer.close(), answerLimitMs)));
  }

  setUp(shardNumbers(shardCount));
  return {
    current: () => served,
    start() {
      isStarted = true;
      for (const shard of served.keys()) startOne(shard);
    },
    async look() {
      const recorder = served.get(0)?.consumer;
      if (recorder === undefined) return;
      const recorded = await withDeadline(recorder.readShardCounts(), answerLimitMs);
      if (isStopping) return;
      const [largest = shardCount, next = shardCount] = [...recorded, shardCount].toSorted((a, b) => b - a);
      setUp(shardNumbers(largest));
      const unused = [...served.keys()].filter((shard) => shard >= largest);
      if (await areEmpty(unused)) await takeDown(unused);
      if (largest === shardCount) return;
      const inNoSmallerQueue = [...served.keys()].filter((shard) => shard >= next);
      if (await areEmpty(inNoSmallerQueue)) await withDeadline(recorder.forgetShardCount(largest), answerLimitMs);
    },
    async drain() {
      isStopping = true;
      for (const watches of watching.values()) watches.abort();
      await Promise.allSettled(Array.from(served.values(), ({ consumer }) => consumer.drain()));
    },
    async close() {
      isStopping = true;
      await Promise.allSettled(Array.from(served.values(), ({ consumer }) => consumer.close()));
    },
  };
}

/** With more shards than slots, each shard has one. */
function divide({ concurrency, maxHeldBytes }: HoldLimits, shards: number): HoldLimits {
  return {
    concurrency: Math.max(1, Math.floor(concurrency / shards)),
    maxHeldBytes: Math.max(1, Math.floor(maxHeldBytes / shards)),
  };
}

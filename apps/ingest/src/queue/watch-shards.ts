import { digestSubject, namingShards, type Producer, shardOf } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";
import { type QueueWatch, watchQueue } from "./watch-queue.ts";

export interface ShardsWatch {
  /**
   * Adds the event to its shard.
   *
   * @throws as `runWhileAvailable` of a {@link QueueWatch}, and `enqueue` of a producer
   */
  enqueue: (event: Parameters<Producer["enqueue"]>[0]) => Promise<number>;
  /** Whether any shard can store events safely. The events of the others are refused. */
  isAvailable(): boolean;
  countUnavailable(): number;
  /** Why no shard can store events safely, for an operator. Empty if one can. */
  problems(): string[];
  /** Why some shards cannot. Empty if all or none can. */
  warnings(): string[];
  stop(): void;
}

/** Watches each shard by itself, so that an outage of one stops only the events of its bookings. */
export async function watchShards(options: { producers: Producer[]; logger: Logger }): Promise<ShardsWatch> {
  const { producers, logger } = options;
  const hasOne = producers.length === 1;
  const shards = await Promise.all(
    producers.map(async (producer, shard) => {
      return { producer, watch: await watchQueue({ producer, logger: hasOne ? logger : logger.child({ shard }) }) };
    }),
  );
  const countUnavailable = () => shards.filter(({ watch }) => watch.problems().length > 0).length;
  const isAvailable = () => countUnavailable() < shards.length;
  const findProblems = () =>
    hasOne
      ? shards.flatMap(({ watch }) => watch.problems())
      : namingShards(shards.map(({ watch }, shard) => [shard, watch.problems()]));
  return {
    async enqueue(event) {
      const subject = digestSubject(event);
      const shard = shards[shardOf(subject, shards.length)];
      if (shard === undefined) throw new Error("There is no such shard.");
      return shard.watch.runWhileAvailable(() => shard.producer.enqueue(event, subject));
    },
    isAvailable,
    countUnavailable,
    problems: () => (isAvailable() ? [] : findProblems()),
    warnings: () => (isAvailable() ? findProblems() : []),
    stop() {
      for (const { watch } of shards) watch.stop();
    },
  };
}

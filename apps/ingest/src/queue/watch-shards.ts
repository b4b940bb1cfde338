import { digestSubject, namingShards, type Producer, shardOf } from "@booking-events/queue";
import { isHostClockWrong, type Logger } from "@booking-events/runtime";
import { QueueWatch } from "./watch-queue.ts";

export type ShardsWatch = Awaited<ReturnType<typeof watchShards>>;

/** Watches each shard by itself, so that an outage of one stops only the events of its bookings. */
export async function watchShards({ producers, logger }: { producers: Producer[]; logger: Logger }) {
  const shards = producers.map((producer, shard) => {
    return { producer, watch: new QueueWatch(producer, producers.length === 1 ? logger : logger.child({ shard })) };
  });
  await Promise.all(shards.map(({ watch }) => watch.start()));
  const countUnavailable = () => shards.filter(({ watch }) => watch.problems().length > 0).length;
  const isAvailable = () => countUnavailable() < shards.length;
  const findProblems = () => namingShards(shards.map(({ watch }, shard) => [shard, watch.problems()]));
  return {
    /**
     * Adds the event to its shard.
     *
     * @throws as `runWhileAvailable` of a {@link QueueWatch}, and `enqueue` of a producer
     */
    async enqueue(event: Parameters<Producer["enqueue"]>[0]): Promise<number> {
      const subject = digestSubject(event);
      const shard = shards[shardOf(subject, shards.length)];
      if (shard === undefined) throw new Error("There is no such shard.");
      return shard.watch.runWhileAvailable(() => shard.producer.enqueue(event, subject));
    },
    /** Whether any shard can store events safely. The events of the others are refused. */
    isAvailable,
    countUnavailable,
    /** Why no shard can store events safely, for an operator. Empty if one can. */
    problems: () => (isAvailable() ? [] : findProblems()),
    /** Why some shards cannot. Empty if all or none can. */
    warnings: () => (isAvailable() ? findProblems() : []),
    /** Whether this host's clock is known to differ too much from that of each Redis. */
    isHostClockWrong: () => isHostClockWrong(producers.flatMap((producer) => producer.redisClock() ?? [])),
    stop() {
      for (const { watch } of shards) watch.stop();
    },
  };
}

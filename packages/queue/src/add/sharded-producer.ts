import { digestSubject } from "../events/event-subject.ts";
import type { QueueLoad } from "../look/queue-load.ts";
import { shardCountIntervalMs } from "../shards/shard-counts.ts";
import { locateShard, namingShards, shardNumbers, shardOf } from "../shards/shards.ts";
import type { NumberedEvent, Replay } from "./add-numbered-events.ts";
import { createProducer, type Producer, type ProducerOptions } from "./producer.ts";

export type ShardedProducer = ReturnType<typeof createShardedProducer>;

/**
 * Adds events to a queue with any number of shards, by a producer for each. Each has a connection of its own, so that
 * one shard never waits for another. Workers learn the number of shards from the record that this writes.
 */
export function createShardedProducer(
  options: ProducerOptions & {
    shardCount: number;
    /** Replaces the producers in tests. */
    createProducer?: typeof createProducer;
  },
) {
  const { shardCount, createProducer: create = createProducer } = options;
  const producers = shardNumbers(shardCount).map((shard) => create(locateShard(options, shard)));
  const [first, ...others] = producers;
  if (first === undefined) throw new Error("A queue has at least one shard.");
  const stopRecording = shardCount > 1 ? keepRecording(first, shardCount, options.onError) : () => {};
  const producerOf = (event: Replay["envelope"]) => producers[shardOf(digestSubject(event), shardCount)] ?? first;

  return {
    shards: [first, ...others] as [Producer, ...Producer[]],
    /** As `requeue` of a producer. */
    requeue: (replay: Replay) => producerOf(replay.envelope).requeue(replay),
    /** As `enqueueNumbered` of a producer. */
    async enqueueNumbered(events: NumberedEvent[]): Promise<number> {
      const counts = await Promise.all(
        Array.from(Map.groupBy(events, producerOf), ([producer, ofShard]) => producer.enqueueNumbered(ofShard)),
      );
      return counts.reduce((total, count) => total + count, 0);
    },
    /** As `findProblems` of a producer, for all shards. */
    async findProblems(): Promise<string[]> {
      const problems = await Promise.all(producers.map((producer) => producer.findProblems()));
      return namingShards([...problems.entries()]);
    },
    /** The sum of the backlogs, and the fullest Redis. @throws if a shard does not answer */
    async measureLoad(): Promise<QueueLoad> {
      const loads = await Promise.all(producers.map((producer) => producer.measureLoad()));
      return {
        backlog: loads.reduce((total, { backlog }) => total + backlog, 0),
        memoryShare: Math.max(...loads.map(({ memoryShare }) => memoryShare)),
      };
    },
    async close() {
      stopRecording();
      await Promise.all(producers.map((producer) => producer.close()));
    },
  };
}

/** Records the number of shards on each new connection, and regularly. */
function keepRecording(producer: Producer, shardCount: number, onError: (error: Error) => void): () => void {
  const record = () => void producer.recordShardCount(shardCount).catch(onError);
  producer.onConnected(record);
  const timer = setInterval(record, shardCountIntervalMs).unref();
  return () => clearInterval(timer);
}

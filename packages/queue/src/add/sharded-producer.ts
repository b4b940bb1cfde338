import { digestSubject } from "../events/event-subject.ts";
import type { QueueLoad } from "../look/queue-load.ts";
import { shardCountIntervalMs } from "../shards/shard-counts.ts";
import { locateShard, namingShards, shardNumbers, shardOf } from "../shards/shards.ts";
import type { NumberedEvent } from "./add-numbered-events.ts";
import { createProducer, type Producer, type ProducerOptions } from "./producer.ts";

/** Adds events to a queue with any number of shards. */
export interface ShardedProducer {
  /** The producers of the shards, by number. */
  shards: [Producer, ...Producer[]];
  /** As `requeue` of a producer. @param event the parsed envelope, which decides the shard */
  requeue(eventId: string, data: unknown, event: Parameters<typeof digestSubject>[0]): Promise<void>;
  /** As `enqueueNumbered` of a producer. */
  enqueueNumbered(events: NumberedEvent[]): Promise<number>;
  /** As `findProblems` of a producer, for all shards. */
  findProblems(): Promise<string[]>;
  /** The sum of the backlogs, and the fullest Redis. @throws if a shard does not answer */
  measureLoad(): Promise<QueueLoad>;
  close(): Promise<void>;
}

/**
 * Creates a producer for each shard. Each has a connection of its own, so that one shard never waits for another. Workers
 * learn the number of shards from the record that this writes.
 */
export function createShardedProducer(
  options: ProducerOptions & {
    shardCount: number;
    /** Replaces the producers in tests. */
    createProducer?: typeof createProducer;
  },
): ShardedProducer {
  const { shardCount, createProducer: create = createProducer } = options;
  const producers = shardNumbers(shardCount).map((shard) => create(locateShard(options, shard)));
  const [first, ...others] = producers;
  if (first === undefined) throw new Error("A queue has at least one shard.");
  const stopRecording = shardCount > 1 ? keepRecording(first, shardCount, options.onError) : () => {};
  /** The producer of an event's shard. */
  const producerOf = (event: Parameters<typeof digestSubject>[0]) =>
    producers[shardOf(digestSubject(event), shardCount)] ?? first;

  return {
    shards: [first, ...others],
    requeue: (eventId, data, event) => producerOf(event).requeue(eventId, data),
    async enqueueNumbered(events) {
      const counts = await Promise.all(
        Array.from(Map.groupBy(events, producerOf), ([producer, ofShard]) => producer.enqueueNumbered(ofShard)),
      );
      return counts.reduce((total, count) => total + count, 0);
    },
    async findProblems() {
      if (shardCount === 1) return first.findProblems();
      const problems = await Promise.all(producers.map((producer) => producer.findProblems()));
      return namingShards(problems.entries());
    },
    async measureLoad() {
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

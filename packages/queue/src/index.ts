import { restoreStringMethods } from "./restore-string-methods.ts";

export type { AcceptedEvent } from "./add-events.ts";
export type { NumberedEvent } from "./add-numbered-events.ts";
export type { QueueLocation } from "./connect-to-redis.ts";
export {
  type Consumer,
  createConsumer,
  DelayDelivery,
  type Delivery,
  ReleaseDelivery,
} from "./consumer.ts";
export { digestSubject } from "./event-subject.ts";
export { examineRedis, type RedisExamination } from "./examine-redis.ts";
export { findQueuedEvents, type QueuedEvent, type QueueSearch } from "./find-queued-events.ts";
export { forEachShard, type ShardedQueue, type ShardResult, valuesOf } from "./for-each-shard.ts";
export { gatherPerTurn } from "./gather-per-turn.ts";
export type { HoldLimits } from "./held-events.ts";
export { type LastUses, readLastUses, type SecretUse } from "./last-use.ts";
export { setQueuePaused } from "./pause-queue.ts";
export { createProducer, EnqueueError, enqueueDeadlineMs, type Producer, type ProducerOptions } from "./producer.ts";
export type { QueueLoad } from "./queue-load.ts";
export { queueName } from "./queue-name.ts";
export type { WaitingEvent } from "./queue-reader.ts";
export { createStateReader, type QueueState, type ShardState } from "./queue-state.ts";
export { openQueuedEvents, type QueuedEvents } from "./queued-events.ts";
export { type QueueStatus, readQueueStatus } from "./read-queue-status.ts";
export {
  createLastUseWriter,
  createRefusalWriter,
  createWarningWriter,
  type RecordWriter,
} from "./record-writer.ts";
export { listUrls, nameVariable, type RedisServers } from "./redis-servers.ts";
export { type RecordedRefusal, readRefusals } from "./refusals.ts";
export { maxAttempts } from "./retry-policy.ts";
export { createShardedProducer, type ShardedProducer } from "./sharded-producer.ts";
export { createShardedReader } from "./sharded-reader.ts";
export { formatShards, locateShard, namingShards, shardNumbers, shardOf, shardsOf } from "./shards.ts";
export { type GivenUpEvent, LostClaim, type Verdict } from "./sweep-failed.ts";
export { createTokenBuckets, type TokenBuckets } from "./token-buckets.ts";
export { readWarningCounts, toDay, type WarningCount, warningDaysKept } from "./warning-counts.ts";
export { fetchIntervalMs } from "./worker-backend.ts";
export { type WorkerIdentity, workerHeartbeatIntervalMs } from "./worker-registry.ts";

// All imports, including ioredis, have been evaluated at this point.
restoreStringMethods();

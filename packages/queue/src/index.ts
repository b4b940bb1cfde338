import { restoreStringMethods } from "./redis/restore-string-methods.ts";

export type { AcceptedEvent } from "./add/add-events.ts";
export { type NumberedEvent, SequenceInFuture } from "./add/add-numbered-events.ts";
export { EnqueueError, enqueueDeadlineMs } from "./add/confirmed-writes.ts";
export { createProducer, type Producer } from "./add/producer.ts";
export { createShardedProducer, type ShardedProducer } from "./add/sharded-producer.ts";
export { digestSubject } from "./events/event-subject.ts";
export { queueName } from "./events/queue-name.ts";
export { maxAttempts } from "./events/retry-policy.ts";
export { exportQueueMetrics } from "./look/export-queue-metrics.ts";
export type { QueueLoad } from "./look/queue-load.ts";
export { createQueueReader, type WaitingEvent } from "./look/queue-reader.ts";
export { createStateReader } from "./look/queue-state.ts";
export { type WorkerIdentity, workerHeartbeatIntervalMs } from "./look/worker-registry.ts";
export { examineRedis, type RedisExamination } from "./operate/examine-redis.ts";
export { findQueuedEvents, type QueuedEvent, type QueueSearch } from "./operate/find-queued-events.ts";
export { setQueuePaused } from "./operate/pause-queue.ts";
export { openQueuedEvents, type QueuedEvents } from "./operate/queued-events.ts";
export { type QueueStatus, readQueueStatus } from "./operate/read-queue-status.ts";
export { readRedisTimes } from "./operate/read-redis-times.ts";
export { type RetriedNow, retryNow } from "./operate/retry-now.ts";
export { type LastUses, readLastUses, type SecretUse } from "./partners/last-use.ts";
export { Recorder } from "./partners/recorder.ts";
export { openRecords, type Records } from "./partners/records.ts";
export { type RecordedRefusal, readRefusals } from "./partners/refusals.ts";
export { createTokenBuckets, readBytesToday, type TokenBuckets } from "./partners/token-buckets.ts";
export { readWarningCounts, toDay, type WarningCount, warningDaysKept } from "./partners/warning-counts.ts";
export type { QueueLocation } from "./redis/connect-to-redis.ts";
export { forEachShard, type ShardedQueue, type ShardResult, valuesOf } from "./shards/for-each-shard.ts";
export { formatShards, locateShard, namingShards, shardNumbers, shardOf } from "./shards/shards.ts";
export { type Consumer, createConsumer } from "./take/consumer.ts";
export { DelayDelivery, type Delivery, ReleaseDelivery } from "./take/delivery.ts";
export type { HoldLimits } from "./take/held-events.ts";
export { type GivenUpEvent, LostClaim, type Verdict } from "./take/sweep-failed.ts";
export { fetchIntervalMs } from "./take/worker-backend.ts";

// All imports, including ioredis, have been evaluated at this point.
restoreStringMethods();

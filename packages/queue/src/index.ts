import { restoreStringMethods } from "./redis/restore-string-methods.ts";

export type { AcceptedEvent } from "./add/add-events.ts";
export { type NumberedEvent, SequenceInFuture } from "./add/add-numbered-events.ts";
export { EnqueueError, enqueueDeadlineMs } from "./add/confirmed-writes.ts";
export { createProducer, type Producer } from "./add/producer.ts";
export { createShardedProducer, type ShardedProducer } from "./add/sharded-producer.ts";
export { digestSubject, isTestSubject, subjectOf } from "./events/event-subject.ts";
export { queueName } from "./events/queue-name.ts";
export { maxAttempts } from "./events/retry-policy.ts";
export { exportQueueMetrics } from "./look/export-queue-metrics.ts";
export type { QueueLoad } from "./look/queue-load.ts";
export { createQueueReader, type QueueReader, type WaitingEvent } from "./look/queue-reader.ts";
export { createStateReader } from "./look/queue-state.ts";
export type { WaitingEvents } from "./look/waiting-events.ts";
export { workerHeartbeatIntervalMs } from "./look/worker-registry.ts";
export { changeQueue, readQueueRecord } from "./operate/change-queue.ts";
export { examineRedis, type RedisExamination } from "./operate/examine-redis.ts";
export { findQueuedEvent } from "./operate/find-queued-event.ts";
export { findQueuedEvents, type QueueSearch } from "./operate/find-queued-events.ts";
export { findSentinelProblems } from "./operate/find-sentinel-problems.ts";
export { groupQueuedEvents } from "./operate/group-queued-events.ts";
export { listQueuedEvents } from "./operate/list-queued-events.ts";
export { openQueuedEvents, type QueuedEvents } from "./operate/queued-events.ts";
export { type QueueStatus, readQueueStatus } from "./operate/read-queue-status.ts";
export type { QueuedEvent } from "./operate/read-queued-events.ts";
export { readRedisTimes } from "./operate/read-redis-times.ts";
export { reservePlace } from "./operate/reserve-place.ts";
export { retryNow } from "./operate/retry-now.ts";
export { type AnswerCount, readAllAnswerCounts } from "./partners/answer-counts.ts";
export {
  addUpDays,
  countDaysKept,
  type FieldCount,
  type FieldTotal,
  readWarningCounts,
  toDay,
} from "./partners/field-counts.ts";
export { type LastUses, readLastUses, type SecretUse } from "./partners/last-use.ts";
export { Recorder } from "./partners/recorder.ts";
export { openRecords, type Records } from "./partners/records.ts";
export { type RecordedRefusal, readRefusals } from "./partners/refusals.ts";
export { type Revocation, recordRevocations } from "./partners/revocations.ts";
export { readTestMark } from "./partners/test-marks.ts";
export { createTokenBuckets, readBytesToday, type TokenBuckets, type UsedLimits } from "./partners/token-buckets.ts";
export type { QueueLocation } from "./redis/connect-to-redis.ts";
export { describeRedisFault } from "./redis/describe-redis-fault.ts";
export { forEachShard, type ShardedQueue, type ShardResult, valuesOf } from "./shards/for-each-shard.ts";
export { describeOtherDatabase, type QueueRecord } from "./shards/queue-record.ts";
export { formatShards, locateShard, namingShards, shardNumbers, shardOf } from "./shards/shards.ts";
export { type Consumer, createConsumer } from "./take/consumer.ts";
export { DelayDelivery, type Delivery, ReleaseDelivery } from "./take/delivery.ts";
export type { HoldLimits } from "./take/held-events.ts";
export { type GivenUpEvent, LostClaim, type Verdict } from "./take/sweep-failed.ts";
export { fetchIntervalMs } from "./take/worker-backend.ts";

// All imports, including ioredis, have been evaluated at this point.
restoreStringMethods();

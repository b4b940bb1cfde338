import { withDeadline } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { type Companion, companionPrefix } from "../shards/shards.ts";
import { type SecretUse, writeLastUses } from "./last-use.ts";
import { type RecordedRefusal, writeRefusals } from "./refusals.ts";
import { addWarningCounts, type WarningCount } from "./warning-counts.ts";

/** Writes what a process records beside the queue. */
export interface RecordWriter<Entry> {
  /** @throws if Redis does not answer within {@link writeDeadlineMs}. Some of the entries may have been written */
  write(entries: Entry[]): Promise<void>;
  close(): void;
}

type WriterOptions = QueueLocation & {
  connectionName: string;
  /** Called for each connection error; ioredis reconnects by itself. */
  onError: (error: Error) => void;
};

const writeDeadlineMs = 1_500;

export function createLastUseWriter(options: WriterOptions): RecordWriter<SecretUse> {
  return createRecordWriter(options, "last-use", writeLastUses);
}

export function createRefusalWriter(options: WriterOptions): RecordWriter<RecordedRefusal> {
  return createRecordWriter(options, "refusals", writeRefusals);
}

export function createWarningWriter(options: WriterOptions): RecordWriter<WarningCount> {
  return createRecordWriter(options, "warnings", addWarningCounts);
}

/**
 * Each has a connection of its own, because another node of a cluster may store its keys. Nothing waits for the
 * connection when a process starts, so what is written before it is ready waits for it.
 */
function createRecordWriter<Entry>(
  options: WriterOptions,
  companion: Companion,
  write: (redis: Redis, prefix: string, entries: Entry[]) => Promise<void>,
): RecordWriter<Entry> {
  const { connectionName, onError } = options;
  const location = { ...options, prefix: companionPrefix(options.prefix, companion) };
  const redis = connectFailingFast(location, onError, { connectionName, enableOfflineQueue: true });
  return {
    write: (entries) => withDeadline(write(redis, options.prefix, entries), writeDeadlineMs),
    close: () => redis.disconnect(),
  };
}

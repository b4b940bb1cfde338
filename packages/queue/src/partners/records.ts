import { withDeadline } from "@booking-events/runtime";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { connectFailingFast } from "../redis/connect-to-redis.ts";
import { companionPrefix } from "../shards/shards.ts";
import { type SecretUse, writeLastUses } from "./last-use.ts";
import { type RecordedRefusal, writeRefusals } from "./refusals.ts";
import { addWarningCounts, type WarningCount } from "./warning-counts.ts";

/**
 * Writes what a process records beside the queue.
 *
 * Each method throws if Redis does not answer within {@link writeDeadlineMs}. Some of the entries may have been written.
 */
export interface Records {
  writeLastUses(uses: SecretUse[]): Promise<void>;
  writeRefusals(refusals: RecordedRefusal[]): Promise<void>;
  addWarningCounts(counts: WarningCount[]): Promise<void>;
  close(): void;
}

const writeDeadlineMs = 1_500;

/**
 * The connection is one of its own, because another node of a cluster may store the records. Nothing waits for it when a
 * process starts, so what is written before it is ready waits for it.
 *
 * @param options.onError called for each connection error; ioredis reconnects by itself
 */
export function openRecords(
  options: QueueLocation & { connectionName: string; onError: (error: Error) => void },
): Records {
  const { prefix, connectionName, onError } = options;
  const location = { ...options, prefix: companionPrefix(prefix, "records") };
  const redis = connectFailingFast(location, onError, { connectionName, enableOfflineQueue: true });
  return {
    writeLastUses: (uses) => withDeadline(writeLastUses(redis, prefix, uses), writeDeadlineMs),
    writeRefusals: (refusals) => withDeadline(writeRefusals(redis, prefix, refusals), writeDeadlineMs),
    addWarningCounts: (counts) => withDeadline(addWarningCounts(redis, prefix, counts), writeDeadlineMs),
    close: () => redis.disconnect(),
  };
}

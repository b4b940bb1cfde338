import { withDeadline } from "@booking-events/runtime";
import { connectFailingFast, type QueueLocation } from "../redis/connect-to-redis.ts";
import { companionPrefix } from "../shards/shards.ts";
import { type SecretUse, writeLastUses } from "./last-use.ts";
import { type RecordedRefusal, writeRefusals } from "./refusals.ts";
import { type Revocation, readRevocations, writeRevocations } from "./revocations.ts";
import { addWarningCounts, type WarningCount } from "./warning-counts.ts";

const writeDeadlineMs = 1_500;

export type Records = ReturnType<typeof openRecords>;

/**
 * Writes what a process records beside the queue, and reads which secrets were revoked.
 *
 * The connection is one of its own, because another node of a cluster may store the records. Nothing waits for it when a
 * process starts, so what is written before it is ready waits for it.
 *
 * Each method throws if Redis does not answer within {@link writeDeadlineMs}. Some of the entries may have been written.
 */
export function openRecords(options: QueueLocation & { connectionName: string; onError: (error: Error) => void }) {
  const { prefix, connectionName, onError } = options;
  const location = { ...options, prefix: companionPrefix(prefix, "records") };
  const redis = connectFailingFast(location, onError, { connectionName, enableOfflineQueue: true });
  return {
    writeLastUses: (uses: SecretUse[]) => withDeadline(writeLastUses(redis, prefix, uses), writeDeadlineMs),
    writeRefusals: (refusals: RecordedRefusal[]) =>
      withDeadline(writeRefusals(redis, prefix, refusals), writeDeadlineMs),
    addWarningCounts: (counts: WarningCount[]) =>
      withDeadline(addWarningCounts(redis, prefix, counts), writeDeadlineMs),
    writeRevocations: (revocations: Revocation[]) =>
      withDeadline(writeRevocations(redis, prefix, revocations), writeDeadlineMs),
    readRevocations: () => withDeadline(readRevocations(redis, prefix), writeDeadlineMs),
    close: () => redis.disconnect(),
  };
}

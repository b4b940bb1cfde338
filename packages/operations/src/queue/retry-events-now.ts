import { forEachShard, formatShards, retryNow, type ShardResult } from "@booking-events/queue";
import type { RedisServers } from "@booking-events/runtime";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { OperationFailure } from "../operation-failure.ts";
import { describeRedisError, readRedisSettings } from "../services/queue.ts";

export interface RetriedEvents {
  /** Of the shards that answered. */
  counts: { retried: number; delayed: number };
  /** What happened to the others; null: there are none. */
  failure: OperationFailure | null;
}

/**
 * Lets events that failed be tried now.
 *
 * @param code only those whose last attempt failed with it
 */
export function retryEventsNow(context: ActingContext, code: string | undefined): Promise<RetriedEvents> {
  return recordAction(context, { command: "queue retry-now", arguments: { code } }, async (record) => {
    const settings = readRedisSettings(context.environment);
    const results = await forEachShard(settings, (location) => retryNow({ ...location, code }));
    const counts = results.flatMap((result) => ("value" in result ? [result.value] : []));
    const retried = counts.reduce((sum, shard) => sum + shard.retried, 0);
    const delayed = counts.reduce((sum, shard) => sum + shard.delayed, 0);
    record.did = { retried };
    const failure = findFailure(results, settings.redisServers);
    if (counts.length === 0 && failure !== null) throw failure;
    return { counts: { retried, delayed }, failure };
  });
}

function findFailure(results: ShardResult<unknown>[], redisServers: RedisServers): OperationFailure | null {
  const failed = results.filter((result) => "error" in result);
  if (failed[0] === undefined) return null;
  const error = describeRedisError(failed[0].error, redisServers);
  if (!(error instanceof OperationFailure)) throw error;
  if (results.length === 1) return error;
  const shards = formatShards(failed.map(({ shard }) => shard));
  return new OperationFailure(
    `Not retried: shards ${shards} of ${results.length}. ${error.message} Run the command again.`,
    { cause: error },
  );
}

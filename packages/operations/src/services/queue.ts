import { setTimeout as sleep } from "node:timers/promises";
import {
  createShardedProducer,
  describeRedisFault,
  type ShardedProducer,
  type ShardedQueue,
} from "@booking-events/queue";
import {
  listUrls,
  parseEnvironment,
  type RedisServers,
  redisVariables,
  toRedisServers,
  variables,
} from "@booking-events/runtime";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";

const readyWithinMs = 2_000;
const pollIntervalMs = 200;

/**
 * Runs work that adds events to the queue, once Redis can store them safely.
 *
 * @param nothingDone the end of the message if Redis can't
 * @throws OperationFailure
 */
export async function withProducer<Result>(
  { environment }: Context,
  nothingDone: string,
  work: (producer: ShardedProducer) => Promise<Result>,
): Promise<Result> {
  // Errors fail the command, which reports them.
  const producer = createShardedProducer({ ...readRedisSettings(environment), onError: () => {} });
  try {
    await untilReady(producer, nothingDone);
    return await work(producer);
  } finally {
    await producer.close();
  }
}

async function untilReady(producer: ShardedProducer, nothingDone: string): Promise<void> {
  const giveUpAtMs = Date.now() + readyWithinMs;
  for (;;) {
    const problems = await producer.findProblems();
    if (problems.length === 0) return;
    if (Date.now() > giveUpAtMs) throw new OperationFailure(`${problems.join(" ")} ${nothingDone}`);
    await sleep(pollIntervalMs);
  }
}

interface RedisSettings extends ShardedQueue {
  replicasToConfirm: number;
}

export function readRedisSettings(environment: Context["environment"]): RedisSettings {
  const { QUEUE_PREFIX, QUEUE_SHARDS, REDIS_REPLICAS_TO_CONFIRM } = variables;
  const settings = parseEnvironment(
    { ...redisVariables, QUEUE_PREFIX, QUEUE_SHARDS, REDIS_REPLICAS_TO_CONFIRM },
    environment,
  );
  return {
    redisServers: toRedisServers(settings),
    prefix: settings.QUEUE_PREFIX,
    shardCount: settings.QUEUE_SHARDS,
    replicasToConfirm: settings.REDIS_REPLICAS_TO_CONFIRM,
  };
}

/**
 * Runs work on the queue's Redis.
 *
 * @throws OperationFailure if Redis can't be reached, or refuses
 */
export async function withRedis<Result>(
  { environment }: Context,
  work: (settings: RedisSettings) => Promise<Result>,
): Promise<Result> {
  const settings = readRedisSettings(environment);
  try {
    return await work(settings);
  } catch (error) {
    throw describeRedisError(error, settings.redisServers);
  }
}

/** Whether the operator says where Redis is. Some commands do without it. */
export function knowsRedis(environment: Context["environment"]): boolean {
  return ["REDIS_URL", "REDIS_CLUSTER", "REDIS_SENTINELS"].some((name) => environment[name]);
}

/** @returns sentences for the operator, without the URL's password. An error of another origin is returned unchanged */
export function describeRedisError(error: unknown, redisServers: RedisServers): unknown {
  if (error instanceof OperationFailure) return error;
  const fault = describeRedisFault(error, redisServers);
  if (fault === undefined) return error;
  const hosts = listUrls(redisServers).map((url) => new URL(url).host);
  return new OperationFailure(`Redis at ${hosts.join(", ")} ${fault.what}. ${fault.advice}`.trimEnd(), {
    cause: error,
  });
}

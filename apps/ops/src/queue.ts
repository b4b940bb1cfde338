import { setTimeout as sleep } from "node:timers/promises";
import { createShardedProducer, type ShardedProducer, type ShardedQueue } from "@booking-events/queue";
import {
  listUrls,
  nameVariable,
  parseEnvironment,
  type RedisServers,
  redisVariables,
  toRedisServers,
  variables,
} from "@booking-events/runtime";
import type { Context } from "./context.ts";
import { CommandFailure } from "./terminal/command-failure.ts";

const readyWithinMs = 2_000;
const pollIntervalMs = 200;

/**
 * Runs work that adds events to the queue, once Redis can store them safely.
 *
 * @param nothingDone the end of the message if Redis can't
 * @throws CommandFailure
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
    if (Date.now() > giveUpAtMs) throw new CommandFailure(`${problems.join(" ")} ${nothingDone}`);
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
 * @throws CommandFailure if Redis can't be reached, or refuses
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

/** How ioredis and our own deadlines say that Redis does not answer. */
const silence = /^(Connection is closed|Command timed out|No result within)/;

/** @returns a sentence for the operator, without the URL's password. An error of another origin is returned unchanged */
export function describeRedisError(error: unknown, redisServers: RedisServers): unknown {
  if (!(error instanceof Error)) return error;
  const variable = nameVariable(redisServers);
  const where = listUrls(redisServers)
    .map((url) => new URL(url).host)
    .join(", ");
  const credentials = variable === "REDIS_URL" ? variable : "REDIS_USERNAME and REDIS_PASSWORD";
  // Redis' own errors begin with a code. The rest may repeat arguments.
  const [redisCode = ""] = error.message.split(" ", 1);
  if (redisCode === "WRONGPASS" || redisCode === "NOAUTH")
    return new CommandFailure(`Redis at ${where} refuses the user or the password in ${credentials} (${redisCode}).`, {
      cause: error,
    });
  if (error.name === "ReplyError")
    return new CommandFailure(`Redis at ${where} refused the command (${redisCode}).`, { cause: error });
  const { code } = error as { code?: unknown };
  const isSilent = error.name === "MaxRetriesPerRequestError" || silence.test(error.message);
  if (error instanceof CommandFailure || !(typeof code === "string" || isSilent)) return error;
  return new CommandFailure(
    `Redis at ${where} can't be reached (${typeof code === "string" ? code : "no answer"}). Check that it runs, and that ${variable} is correct.`,
    { cause: error },
  );
}

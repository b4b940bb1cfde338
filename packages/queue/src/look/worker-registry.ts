import type { Redis } from "ioredis";
import { defineScript, runScript } from "../redis/run-script.ts";

/** A worker's process, as operators see it. */
export interface WorkerIdentity {
  version: string;
  host: string;
  pid: number;
}

export const workerHeartbeatIntervalMs = 5_000;
/** A worker is no longer listed after this time without a record. Two records may fail. */
export const heartbeatValidMs = 15_000;

/**
 * A sorted set of the workers by the second of Redis' clock in which each last recorded itself, like the set of ingests
 * in `token-buckets.ts`.
 *
 * KEYS: the set.
 * ARGV: the worker, for how many seconds a record is valid.
 */
const heartbeatScript = defineScript(`
local now = tonumber(redis.call('TIME')[1])
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
redis.call('ZREMRANGEBYSCORE', KEYS[1], now + 1, '+inf')
return redis.call('ZCARD', KEYS[1])
`);

/** Records that the worker is alive. */
export async function recordWorker(redis: Redis, prefix: string, worker: WorkerIdentity): Promise<void> {
  await runScript(redis, heartbeatScript, [workersKey(prefix)], [toMember(worker), heartbeatValidMs / 1_000]);
}

export async function removeWorker(redis: Redis, prefix: string, worker: WorkerIdentity): Promise<void> {
  await redis.zrem(workersKey(prefix), toMember(worker));
}

/** @param member as in {@link workersKey} */
export function parseWorker(member: string): WorkerIdentity {
  const [version, host, pid] = JSON.parse(member) as [string, string, number];
  return { version, host, pid };
}

function toMember({ version, host, pid }: WorkerIdentity): string {
  return JSON.stringify([version, host, pid]);
}

/** The key of the set of workers. */
export function workersKey(prefix: string): string {
  return `${prefix}:workers`;
}

import type { Redis } from "ioredis";
import { recordAlive } from "../redis/record-alive.ts";

export interface WorkerIdentity {
  version: string;
  host: string;
  pid: number;
}

export const workerHeartbeatIntervalMs = 5_000;
/** A worker is no longer listed after this time without a record. Two records may fail. */
export const heartbeatValidMs = 15_000;

export async function recordWorker(redis: Redis, prefix: string, worker: WorkerIdentity): Promise<void> {
  await recordAlive(redis, workersKey(prefix), toMember(worker), heartbeatValidMs / 1_000);
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

export function workersKey(prefix: string): string {
  return `${prefix}:workers`;
}

import { setTimeout as sleep } from "node:timers/promises";
import type { RedisAddress, RedisServers } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { parseInfo } from "./durability.ts";
import { withServer } from "./with-connection.ts";

export interface ReplicaRewrite extends RedisAddress {
  /** Why the file may still contain what was removed; undefined if it does not. */
  problem: string | undefined;
}

const pollIntervalMs = 100;
/** A rewrite of 10 GB takes minutes. */
const rewriteTimeoutMs = 15 * 60 * 1_000;
/** A replica that follows its primary is milliseconds behind it. */
const catchUpTimeoutMs = 30_000;

/**
 * Makes Redis rewrite its append-only file without what has been removed, and waits until that is done.
 *
 * @returns undefined, or why it could not
 */
export async function rewriteAppendOnlyFile(redis: Redis): Promise<string | undefined> {
  if ((await readPersistence(redis)).get("aof_enabled") !== "1") return undefined;
  try {
    // A rewrite that is already running may have copied what has been removed since.
    await untilRewritten(redis);
    await redis.bgrewriteaof();
  } catch (error) {
    if (error instanceof Error && error.name === "ReplyError") return error.message;
    throw error;
  }
  const after = await untilRewritten(redis);
  return after.get("aof_last_bgrewrite_status") === "ok" ? undefined : "the rewrite failed; see Redis' log";
}

/**
 * Does the same on each replica that is connected, and on those that follow it, because Redis does not replicate
 * BGREWRITEAOF. Replicas are asked at the addresses that they announce, as the user that the primary knows.
 */
export async function rewriteOnReplicas(redis: Redis, redisServers: RedisServers): Promise<ReplicaRewrite[]> {
  const info = await redis.info("replication");
  const offset = Number(parseInfo(info).get("master_repl_offset"));

  async function rewriteOn(replica: RedisAddress): Promise<ReplicaRewrite[]> {
    try {
      return await withServer(redisServers, replica, async (connection) => {
        await untilReplicated(connection, offset);
        const problem = await rewriteAppendOnlyFile(connection);
        return [{ ...replica, problem }, ...(await rewriteOnReplicas(connection, redisServers))];
      });
    } catch (error) {
      return [{ ...replica, problem: error instanceof Error ? error.message : String(error) }];
    }
  }
  return (await Promise.all(listReplicas(info).map(rewriteOn))).flat();
}

function listReplicas(info: string): RedisAddress[] {
  return Array.from(info.matchAll(/^slave\d+:ip=(.+?),port=(\d+),/gm), ([, host = "", port]) => ({
    host,
    port: Number(port),
  }));
}

/** Waits until a replica has executed what its primary had written at this offset. */
async function untilReplicated(replica: Redis, offset: number): Promise<void> {
  const giveUpAtMs = Date.now() + catchUpTimeoutMs;
  while (!(Number(parseInfo(await replica.info("replication")).get("slave_repl_offset")) >= offset)) {
    if (Date.now() > giveUpAtMs) throw new Error("it has not received the removals in time");
    await sleep(pollIntervalMs);
  }
}

async function untilRewritten(redis: Redis): Promise<ReadonlyMap<string, string>> {
  const giveUpAtMs = Date.now() + rewriteTimeoutMs;
  for (;;) {
    const facts = await readPersistence(redis);
    const isRunning = ["aof_rewrite_in_progress", "aof_rewrite_scheduled"].some((name) => facts.get(name) === "1");
    if (!isRunning) return facts;
    if (Date.now() > giveUpAtMs) throw new Error("Redis did not finish the rewrite of its append-only file in time.");
    await sleep(pollIntervalMs);
  }
}

async function readPersistence(redis: Redis): Promise<ReadonlyMap<string, string>> {
  return parseInfo(await redis.info("persistence"));
}

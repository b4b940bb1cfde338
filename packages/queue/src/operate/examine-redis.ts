import type { Redis } from "ioredis";
import { findSequenceProblems } from "../events/sequence.ts";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { findDurabilityProblems, parseInfo, readRedisFacts } from "../redis/durability.ts";
import { withConnection } from "../redis/with-connection.ts";

/** What decides whether Redis keeps events, and secrets. */
export interface RedisExamination {
  /** In sentences for an operator, which name the setting to change as `Set: <name> <value>.` */
  durabilityProblems: string[];
  /** Whether Redis permits to read the two settings of fsync. */
  canReadFsync: boolean;
  sequenceProblems: string[];
  /** 0: no limit. */
  maxMemoryBytes: number;
  /** How often settings were changed and written to the configuration file since the start; null: unknown. */
  configChanges: { set: number; written: number } | null;
  /** How far Redis' clock is ahead of this host's. */
  clockAheadMs: number;
  /** How wrong that may be: half of the time that the answer took. */
  clockErrorMs: number;
  /** Null: Redis does not permit to read it. */
  folder: string | null;
  /** Likewise. */
  minReplicasToWrite: number | null;
  /** Likewise, or Redis is no cluster. */
  requiresFullCoverage: boolean | null;
  replicaCount: number;
}

const clockTries = 5;

/**
 * @param location.replicasToConfirm how many replicas must have an event before it counts as queued
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function examineRedis(location: QueueLocation & { replicasToConfirm: number }): Promise<RedisExamination> {
  return withConnection(location, async (redis) => {
    const facts = await readRedisFacts(redis);
    return {
      durabilityProblems: findDurabilityProblems(facts, location),
      canReadFsync: facts.config !== null,
      sequenceProblems: await findSequenceProblems(redis, location.prefix),
      maxMemoryBytes: Number(parseInfo(facts.info).get("maxmemory") ?? 0),
      configChanges: countConfigChanges(await redis.info("commandstats")),
      ...(await measureClock(redis)),
      folder: await readSetting(redis, "dir"),
      minReplicasToWrite: toNumber(await readSetting(redis, "min-replicas-to-write")),
      requiresFullCoverage: await requiresFullCoverage(redis, facts.info),
      replicaCount: Number(parseInfo(facts.info).get("connected_slaves") ?? 0),
    };
  });
}

/** Before Redis 7, all subcommands of CONFIG are counted together. */
function countConfigChanges(info: string): RedisExamination["configChanges"] {
  const stats = parseInfo(info);
  const countCalls = (command: string) => Number(/calls=(\d+)/.exec(stats.get(`cmdstat_${command}`) ?? "")?.[1] ?? 0);
  if (stats.has("cmdstat_config")) return null;
  return { set: countCalls("config|set"), written: countCalls("config|rewrite") };
}

/** The best of several tries. */
async function measureClock(redis: Redis): Promise<Pick<RedisExamination, "clockAheadMs" | "clockErrorMs">> {
  let best = { clockAheadMs: 0, clockErrorMs: Number.POSITIVE_INFINITY };
  for (let tries = 0; tries < clockTries; tries += 1) {
    const startedAtMs = performance.now();
    const [seconds, microseconds] = (await redis.time()) as unknown as [string, string];
    const clockErrorMs = (performance.now() - startedAtMs) / 2;
    const hostMs = performance.timeOrigin + startedAtMs + clockErrorMs;
    const clockAheadMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - hostMs;
    if (clockErrorMs < best.clockErrorMs) best = { clockAheadMs, clockErrorMs };
  }
  return best;
}

async function requiresFullCoverage(redis: Redis, info: string): Promise<boolean | null> {
  if (parseInfo(info).get("cluster_enabled") !== "1") return null;
  const setting = await readSetting(redis, "cluster-require-full-coverage");
  return setting === null ? null : setting === "yes";
}

function toNumber(text: string | null): number | null {
  return text === null ? null : Number(text);
}

async function readSetting(redis: Redis, name: string): Promise<string | null> {
  try {
    const [, value = null] = (await redis.config("GET", name)) as [string, string | null];
    return value;
  } catch {
    return null;
  }
}

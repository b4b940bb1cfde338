import type { Redis } from "ioredis";
import { SequenceCheck } from "../events/sequence.ts";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { findDurabilityProblems, parseInfo, readRedisFacts } from "../redis/durability.ts";
import { type MeasuredClock, measureClock } from "../redis/measure-clock.ts";
import { withConnection } from "../redis/with-connection.ts";

/** What decides whether Redis keeps events, and secrets. */
export interface RedisExamination extends MeasuredClock {
  /** In sentences for an operator, which name the setting to change as `Set: <name> <value>.` */
  durabilityProblems: string[];
  /** Whether Redis permits to read the two settings of fsync. */
  canReadFsync: boolean;
  sequenceProblems: string[];
  /** By how many percent the append-only file grows before Redis rewrites it; 0: never. Null: it may not be read. */
  rewriteAfterPercent: number | null;
  /** The last rewrite of the append-only file has failed. */
  isRewriteFailing: boolean;
  /** 0: no limit. */
  maxMemoryBytes: number;
  /** How often settings were changed and written to the configuration file since the start; null: unknown. */
  configChanges: { set: number; written: number } | null;
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
      sequenceProblems: await new SequenceCheck().findProblems(redis, location.prefix),
      rewriteAfterPercent: toNumber(await readSetting(redis, "auto-aof-rewrite-percentage")),
      isRewriteFailing: parseInfo(facts.info).get("aof_last_bgrewrite_status") === "err",
      maxMemoryBytes: Number(parseInfo(facts.info).get("maxmemory") ?? 0),
      configChanges: countConfigChanges(await redis.info("commandstats")),
      ...(await measureClock(redis, clockTries)),
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

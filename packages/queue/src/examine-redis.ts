import type { Redis } from "ioredis";
import type { QueueLocation } from "./connect-to-redis.ts";
import { findDurabilityProblems, parseInfo, readRedisFacts } from "./redis-durability.ts";
import { findSequenceProblems } from "./sequence.ts";
import { withConnection } from "./with-connection.ts";

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
  /** How far Redis' clock is ahead of this host's. It is wrong by at most half of the time that the answer took. */
  clockAheadMs: number;
  /** Null: Redis does not permit to read it. */
  folder: string | null;
}

/** @throws what ioredis throws when Redis does not answer within 2 s */
export async function examineRedis(location: QueueLocation): Promise<RedisExamination> {
  return withConnection(location, async (redis) => {
    const facts = await readRedisFacts(redis);
    return {
      durabilityProblems: findDurabilityProblems(facts),
      canReadFsync: facts.config !== null,
      sequenceProblems: await findSequenceProblems(redis, location.prefix),
      maxMemoryBytes: Number(parseInfo(facts.info).get("maxmemory") ?? 0),
      configChanges: countConfigChanges(await redis.info("commandstats")),
      clockAheadMs: await measureClock(redis),
      folder: await readFolder(redis),
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

async function measureClock(redis: Redis): Promise<number> {
  const startedAtMs = Date.now();
  const [seconds, microseconds] = (await redis.time()) as unknown as [string, string];
  const hostMs = (startedAtMs + Date.now()) / 2;
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000 - hostMs;
}

async function readFolder(redis: Redis): Promise<string | null> {
  try {
    const [, folder = null] = (await redis.config("GET", "dir")) as [string, string | null];
    return folder;
  } catch {
    return null;
  }
}

import type { Redis } from "ioredis";

const oldestVersion = [6, 2] as const;

/** What Redis says of itself. */
export interface RedisFacts {
  /** The reply of INFO. */
  info: string;
  /** What CONFIG GET says of the settings in {@link fsyncSettings}; null: it is forbidden. */
  config: ReadonlyMap<string, string> | null;
}

/** A pattern, since CONFIG GET takes one only before Redis 7: `appendfsync` and `no-appendfsync-on-rewrite`. */
const fsyncSettings = "*appendfsync*";

/**
 * Asks Redis for what {@link findDurabilityProblems} needs.
 *
 * A managed Redis may forbid CONFIG; then only what INFO shows is checked, and how often it syncs to disk is for the
 * operator to know.
 *
 * @throws what ioredis throws when Redis does not answer
 */
export async function readRedisFacts(redis: Redis): Promise<RedisFacts> {
  const [info, config] = await Promise.all([redis.info(), readFsyncSettings(redis)]);
  return { info, config };
}

/**
 * @param before what an earlier look found
 * @returns the id of the Redis process whose append-only file has all that it holds; undefined: none is known
 */
export function findWholeFile({ info }: RedisFacts, before: string | undefined): string | undefined {
  const facts = parseInfo(info);
  if (facts.get("aof_enabled") !== "1") return undefined;
  return hasWholeFile(facts) ? facts.get("run_id") : before;
}

/** False: Redis may be about to write the file for the first time. */
function hasWholeFile(facts: ReadonlyMap<string, string>): boolean {
  const isRewriting = facts.get("aof_rewrite_in_progress") === "1" || facts.get("aof_rewrite_scheduled") === "1";
  return !isRewriting || facts.get("aof_base_size") !== "0";
}

/**
 * Compares Redis' settings and state with what "200 means durable" needs.
 *
 * @param wholeFileOf what {@link findWholeFile} found in an earlier look
 * @returns sentences for an operator, each with what to set; empty when all is well
 */
export function findDurabilityProblems({ info, config }: RedisFacts, wholeFileOf?: string): string[] {
  const facts = parseInfo(info);
  const problems: string[] = [];
  const version = facts.get("redis_version") ?? "0.0";
  if (!isAtLeast(version, oldestVersion)) {
    problems.push(`Redis is ${version}, older than ${oldestVersion.join(".")}. Upgrade it.`);
  }
  if (facts.get("role") === "slave") {
    problems.push("Redis is a read-only replica. Point REDIS_URL at the primary.");
  }
  if (facts.get("loading") === "1") {
    problems.push("Redis is loading its data. It will be ready by itself.");
  }
  if (facts.get("aof_enabled") === "0") {
    problems.push("Redis has no append-only file, so that events would be lost with it. Set: appendonly yes.");
  }
  // Redis reads its append-only file only once the first rewrite is done. On a server that was empty at its start, the
  // first rewrite of all looks the same, but the file was whole before it.
  if (!hasWholeFile(facts) && facts.get("run_id") !== wholeFileOf) {
    problems.push("Redis is only beginning its append-only file. It will be ready by itself.");
  }
  const fsyncPolicy = config?.get("appendfsync") ?? "always";
  if (fsyncPolicy !== "always") {
    problems.push(`Redis may lose acknowledged events: appendfsync is ${fsyncPolicy}. Set: appendfsync always.`);
  }
  if (config?.get("no-appendfsync-on-rewrite") === "yes") {
    problems.push(
      "Redis may lose acknowledged events while it rewrites its append-only file. Set: no-appendfsync-on-rewrite no.",
    );
  }
  if (facts.get("aof_last_write_status") === "err") {
    problems.push("Redis could not write its append-only file. Check its disk and its log.");
  }
  const evictionPolicy = facts.get("maxmemory_policy");
  if (evictionPolicy !== undefined && evictionPolicy !== "noeviction") {
    problems.push(`Redis may drop events: maxmemory-policy is ${evictionPolicy}. Set: maxmemory-policy noeviction.`);
  }
  return problems;
}

async function readFsyncSettings(redis: Redis): Promise<RedisFacts["config"]> {
  try {
    const reply = (await redis.config("GET", fsyncSettings)) as string[];
    return new Map(reply.flatMap((name, index) => (index % 2 === 0 ? [[name, reply[index + 1] ?? ""]] : [])));
  } catch (error) {
    // NOPERM, or "unknown command" where the provider renamed it.
    if (error instanceof Error && error.name === "ReplyError" && /NOPERM|unknown command/i.test(error.message)) {
      return null;
    }
    throw error;
  }
}

function parseInfo(info: string): Map<string, string> {
  return new Map(
    info
      .split("\r\n")
      .filter((line) => line.includes(":"))
      .map((line) => {
        const colon = line.indexOf(":");
        return [line.slice(0, colon), line.slice(colon + 1)];
      }),
  );
}

function isAtLeast(version: string, [neededMajor, neededMinor]: readonly [number, number]): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  return major > neededMajor || (major === neededMajor && minor >= neededMinor);
}

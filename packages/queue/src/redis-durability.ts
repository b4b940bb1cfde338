import type { Redis } from "ioredis";

const oldestVersion = [6, 2] as const;

/**
 * Compares Redis' settings with what "200 means durable" needs.
 *
 * A managed Redis may forbid CONFIG; then only what INFO shows is checked, and how often it syncs to disk is for the
 * operator to know.
 *
 * @returns sentences for an operator, each with what to set; empty when all is well
 * @throws what ioredis throws when Redis does not answer
 */
export async function findDurabilityProblems(redis: Redis): Promise<string[]> {
  const [info, fsyncPolicy] = await Promise.all([redis.info(), readFsyncPolicy(redis)]);
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
  if (fsyncPolicy !== null && fsyncPolicy !== "always") {
    problems.push(`Redis may lose acknowledged events: appendfsync is ${fsyncPolicy}. Set: appendfsync always.`);
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

async function readFsyncPolicy(redis: Redis): Promise<string | null> {
  try {
    const reply = await redis.config("GET", "appendfsync");
    return Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : null;
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

import type { Redis } from "ioredis";

const oldestVersion = [6, 2] as const;
/** A replica tells its primary once a second what it has. One that has been silent for longer does not confirm events. */
const maxReplicaSilenceMs = 3_000;

export interface RedisFacts {
  /** The reply of INFO. */
  info: string;
  /** The settings {@link fsyncSettings} from CONFIG GET; null if the command is forbidden. */
  config: ReadonlyMap<string, string> | null;
}

/**
 * A pattern, because CONFIG GET takes a single parameter before Redis 7. It matches `appendfsync` and
 * `no-appendfsync-on-rewrite`.
 */
const fsyncSettings = "*appendfsync*";

/**
 * Reads the facts that {@link findDurabilityProblems} needs.
 *
 * A managed Redis may forbid CONFIG. Then only the facts in INFO are checked, and the operator has to know the fsync
 * policy.
 */
export async function readRedisFacts(redis: Redis): Promise<RedisFacts> {
  const [info, config] = await Promise.all([redis.info(), readFsyncSettings(redis)]);
  return { info, config };
}

/**
 * @param before the result of an earlier check
 * @returns the id of the Redis process whose append-only file contains all of its data; undefined if none is known
 */
export function findRunWithCompleteAof({ info }: RedisFacts, before: string | undefined): string | undefined {
  const facts = parseInfo(info);
  if (facts.get("aof_enabled") !== "1") return undefined;
  return isAofComplete(facts) ? facts.get("run_id") : before;
}

/** Returns false if Redis may be writing its first append-only file. */
function isAofComplete(facts: ReadonlyMap<string, string>): boolean {
  const isRewriting = facts.get("aof_rewrite_in_progress") === "1" || facts.get("aof_rewrite_scheduled") === "1";
  return !isRewriting || facts.get("aof_base_size") !== "0";
}

/**
 * Compares Redis' settings and state with what "200 means durable" requires.
 *
 * @param wanted.runWithCompleteAof the result of {@link findRunWithCompleteAof} in an earlier check
 * @param wanted.replicasToConfirm how many replicas must have an event before it counts as queued. Default: 0
 * @returns sentences for an operator, each with the setting to change; empty if there are no problems
 */
export function findDurabilityProblems(
  { info, config }: RedisFacts,
  wanted: { runWithCompleteAof?: string | undefined; replicasToConfirm?: number } = {},
): string[] {
  const { runWithCompleteAof, replicasToConfirm = 0 } = wanted;
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
    problems.push("Redis is loading its data. Wait until it is ready.");
  }
  if (facts.get("aof_enabled") === "0") {
    problems.push("Redis has no append-only file, so a crash would lose events. Set: appendonly yes.");
  }
  // Redis loads its append-only file only if the first rewrite was completed. A server that was empty at its start
  // reports the same state during its first rewrite, but its file was complete before.
  if (!isAofComplete(facts) && facts.get("run_id") !== runWithCompleteAof) {
    problems.push("Redis is writing its first append-only file. Wait until it is ready.");
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
  const replicas = countReplicas(info);
  if (facts.get("role") !== "slave" && replicas < replicasToConfirm) {
    problems.push(
      `Redis has ${replicas} replicas that follow it, but ${replicasToConfirm} must confirm each event. ` +
        "Check that they run and reach it, or change REDIS_REPLICAS_TO_CONFIRM.",
    );
  }
  return problems;
}

/** The replicas that have received all data and still answer. */
function countReplicas(info: string): number {
  const silences = Array.from(info.matchAll(/^slave\d+:.*\bstate=online\b.*\blag=(\d+)/gm), ([, lag]) => Number(lag));
  return silences.filter((silence) => silence * 1_000 <= maxReplicaSilenceMs).length;
}

async function readFsyncSettings(redis: Redis): Promise<RedisFacts["config"]> {
  try {
    const reply = (await redis.config("GET", fsyncSettings)) as string[];
    return new Map(reply.flatMap((name, index) => (index % 2 === 0 ? [[name, reply[index + 1] ?? ""]] : [])));
  } catch (error) {
    // The error is NOPERM, or "unknown command" if the provider renamed the command.
    if (error instanceof Error && error.name === "ReplyError" && /NOPERM|unknown command/i.test(error.message)) {
      return null;
    }
    throw error;
  }
}

export function parseInfo(info: string): Map<string, string> {
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

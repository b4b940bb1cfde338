import {
  formatAddress,
  type RedisAddress,
  type RedisSentinels,
  type RedisServers,
  withDeadline,
} from "@booking-events/runtime";
import { Redis } from "ioredis";
import { toAccessOptions } from "../redis/access.ts";
import { parseInfo } from "../redis/durability.ts";

const timeoutMs = 2_000;

/**
 * Asks all sentinels whether enough of them could agree to replace the primary. Most must be able to, or its failure
 * would be an outage.
 *
 * @returns sentences for an operator, empty if they could, or if there are no sentinels
 */
export async function findSentinelProblems(servers: RedisServers): Promise<string[]> {
  if (typeof servers === "string" || "cluster" in servers) return [];
  const { sentinels } = servers;
  const answers = await Promise.all(
    sentinels.map(async (address) => {
      const problem = await ask(servers, address);
      return problem === null ? [] : [`${formatAddress(address)} ${problem}`];
    }),
  );
  const unable = answers.flat();
  if (sentinels.length - unable.length > sentinels.length / 2) return [];
  return [
    `Too few sentinels could replace Redis' primary, so its failure would be an outage: ${unable.join("; ")}. ` +
      'See "SentinelQuorumLost" in docs/runbook.md.',
  ];
}

/** @returns what keeps this sentinel from taking part in a failover; null: nothing */
async function ask(servers: RedisSentinels, { host, port }: RedisAddress): Promise<string | null> {
  const redis = new Redis({
    host,
    port,
    ...toAccessOptions({
      username: servers.sentinelUsername,
      password: servers.sentinelPassword,
      isEncrypted: servers.isEncrypted,
    }),
    connectionName: "booking-events-ops",
    connectTimeout: timeoutMs,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // The rejection of the command says enough.
  redis.on("error", () => {});
  try {
    const [quorum, info] = await withDeadline(
      Promise.all([readQuorum(redis, servers.name), redis.info("sentinel")]),
      timeoutMs,
    );
    if (quorum !== null) return `says "${quorum}"`;
    return parseInfo(info).get("sentinel_tilt") === "1" ? "trusts nothing for 30 s, after it stood still (TILT)" : null;
  } catch {
    return "does not answer";
  } finally {
    redis.disconnect();
  }
}

/** @returns its refusal; null: enough sentinels see each other */
async function readQuorum(redis: Redis, name: string): Promise<string | null> {
  try {
    await redis.call("SENTINEL", "CKQUORUM", name);
    return null;
  } catch (error) {
    const { message } = error as Error;
    if (/^(NOQUORUM|ERR|NOPERM)\b/.test(message)) return message;
    throw error;
  }
}

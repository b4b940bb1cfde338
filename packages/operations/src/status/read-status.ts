import type { Partner } from "@booking-events/partners";
import { findSentinelProblems, type QueueStatus, readBytesToday, readQueueStatus } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { type DatabaseStatus, readDatabaseStatus } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { describeDatabaseError, readDatabaseSettings } from "../services/database.ts";
import { readPartnersIfPossible } from "../services/partners-file.ts";
import { describeRedisError, readRedisSettings } from "../services/queue.ts";

/** What could be read, or why it could not be. */
export type Reading<Value> = { value: Value } | { problem: string };

export interface Status {
  at: Date;
  queue: Reading<QueueStatus>;
  /** Why the sentinels could not replace Redis' primary. Empty: they could, or there are none. */
  sentinelProblems: string[];
  database: Reading<DatabaseStatus>;
  /**
   * When each partner was last heard of: an accepted event, or a request with a valid secret. Null: unknown, because Redis
   * does not answer. What PostgreSQL has may be old then.
   */
  lastHeardOf: Map<string, Date | null>;
  /** Without test partners. Null: this host does not have the partners file. */
  enabledPartners: Set<string> | null;
  /** The partners that are on hold. */
  heldPartners: string[];
  /** Of the partners of the file. Empty: that, or Redis does not answer. */
  quotas: { partner: string; bytesPerDay: number; bytesToday: number }[];
  /** The share of Redis' memory beyond which ingest refuses events. */
  memoryHighWater: number;
}

/**
 * Reads Redis and PostgreSQL at the same time. If one of them is down, the status of the other is complete.
 *
 * @param options.measuresPace how fast events are taken from the queue, which takes a second if any wait
 */
export async function readStatus(context: Context, options: { measuresPace?: boolean } = {}): Promise<Status> {
  const { REDIS_MEMORY_HIGH_WATER } = variables;
  const at = context.now();
  const redis = readRedisSettings(context.environment);
  const databaseSettings = readDatabaseSettings(context.environment);
  const partners = readPartnersIfPossible(context);
  const real = partners?.filter(({ test }) => !test) ?? null;
  const [queue, sentinelProblems, database, quotas] = await Promise.all([
    read(readQueueStatus(redis, options), (error) => describeRedisError(error, redis.redisServers)),
    findSentinelProblems(redis.redisServers),
    read(readDatabaseStatus(databaseSettings, at), (error) => describeDatabaseError(error, databaseSettings)),
    readQuotas(redis, partners ?? []),
  ]);
  return {
    at,
    queue,
    sentinelProblems,
    database,
    lastHeardOf: findLastHeardOf(queue, database, real ?? []),
    enabledPartners: real && new Set(real.filter(({ enabled }) => enabled).map(({ id }) => id)),
    heldPartners: (partners ?? []).filter(({ held }) => held).map(({ id }) => id),
    quotas,
    memoryHighWater: parseEnvironment({ REDIS_MEMORY_HIGH_WATER }, context.environment).REDIS_MEMORY_HIGH_WATER,
  };
}

async function readQuotas(redis: ReturnType<typeof readRedisSettings>, partners: Partner[]): Promise<Status["quotas"]> {
  try {
    const ids = partners.map(({ id }) => id);
    const bytesToday = await readBytesToday(redis, ids);
    return partners.map(({ id, bytesPerDay }) => ({
      partner: id,
      bytesPerDay,
      bytesToday: bytesToday.get(id) ?? 0,
    }));
  } catch {
    // The status of the queue says why.
    return [];
  }
}

/** @param describe says what an error means to the operator, or returns it */
export async function read<Value>(
  reading: Promise<Value>,
  describe: (error: unknown) => unknown,
): Promise<Reading<Value>> {
  try {
    return { value: await reading };
  } catch (error) {
    const described = describe(error);
    if (described instanceof OperationFailure) return { problem: described.message };
    throw error;
  }
}

/** Of a partner that sends little, the sample of the log may have nothing, but the use of its secrets is recorded. */
function findLastHeardOf(
  queue: Reading<QueueStatus>,
  database: Reading<DatabaseStatus>,
  partners: Partner[],
): Status["lastHeardOf"] {
  const rhythms = "value" in database ? (database.value.data?.rhythms ?? []) : [];
  const lastUses = "value" in queue ? queue.value.lastUses : null;
  const heardOf = new Map<string, Date | null>();
  for (const { id } of partners) {
    const usedAt = lastUses?.ofPartner(id) ?? null;
    if (usedAt !== null) heardOf.set(id, usedAt);
  }
  for (const { partner, lastSeenAt } of rhythms) {
    const usedAt = lastUses?.ofPartner(partner) ?? null;
    if (lastUses === null) heardOf.set(partner, null);
    else heardOf.set(partner, usedAt !== null && usedAt > lastSeenAt ? usedAt : lastSeenAt);
  }
  return heardOf;
}

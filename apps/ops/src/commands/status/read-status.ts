import { PartnersError, readPartnersFile } from "@booking-events/partners";
import { type QueueStatus, readQueueStatus } from "@booking-events/queue";
import { type DatabaseStatus, readDatabaseStatus } from "@booking-events/store";
import type { Context } from "../../context.ts";
import { describeDatabaseError, readDatabaseSettings } from "../../database.ts";
import { partnersPath } from "../../partners-file.ts";
import { describeRedisError, readRedisSettings } from "../../queue.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";

/** What could be read, or why it could not be. */
export type Reading<Value> = { value: Value } | { problem: string };

export interface Status {
  at: Date;
  queue: Reading<QueueStatus>;
  database: Reading<DatabaseStatus>;
  /** When each partner was last heard of: an accepted event, or a request with a valid secret. */
  lastHeardOf: Map<string, Date>;
  /** Null: this host does not have the partners file. */
  enabledPartners: Set<string> | null;
}

/** Reads Redis and PostgreSQL at the same time. If one of them is down, the status of the other is complete. */
export async function readStatus(context: Context): Promise<Status> {
  const at = context.now();
  const redis = readRedisSettings(context.environment);
  const databaseSettings = readDatabaseSettings(context.environment);
  const [queue, database] = await Promise.all([
    read(readQueueStatus(redis), (error) => describeRedisError(error, redis.redisServers)),
    read(readDatabaseStatus(databaseSettings, at), (error) => describeDatabaseError(error, databaseSettings)),
  ]);
  return {
    at,
    queue,
    database,
    lastHeardOf: findLastHeardOf(queue, database),
    enabledPartners: findEnabledPartners(context),
  };
}

function findEnabledPartners(context: Context): Set<string> | null {
  try {
    const { partners } = readPartnersFile(partnersPath(context));
    return new Set(partners.filter(({ enabled }) => enabled).map(({ id }) => id));
  } catch (error) {
    if (error instanceof PartnersError) return null;
    throw error;
  }
}

async function read<Value>(reading: Promise<Value>, describe: (error: unknown) => unknown): Promise<Reading<Value>> {
  try {
    return { value: await reading };
  } catch (error) {
    const described = describe(error);
    if (described instanceof CommandFailure) return { problem: described.message };
    throw error;
  }
}

function findLastHeardOf(queue: Reading<QueueStatus>, database: Reading<DatabaseStatus>): Map<string, Date> {
  const rhythms = "value" in database ? (database.value.data?.rhythms ?? []) : [];
  return new Map(
    rhythms.map(({ partner, lastSeenAt }) => {
      const usedAt = ("value" in queue && queue.value.lastUses?.ofPartner(partner)) || null;
      return [partner, usedAt !== null && usedAt > lastSeenAt ? usedAt : lastSeenAt];
    }),
  );
}

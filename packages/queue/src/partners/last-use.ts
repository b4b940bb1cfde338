import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** When a partner last used one of its secrets. It contains neither the secret nor its digest. */
export interface SecretUse {
  partner: string;
  secretId: string;
  usedAt: Date;
}

/** Writes one field for each secret. Processes may overwrite each other's times, which differ by a few seconds. */
export async function writeLastUses(redis: Redis, prefix: string, uses: SecretUse[]): Promise<void> {
  const fields = uses.map(({ partner, secretId, usedAt }): [string, string] => [
    toField(partner, secretId),
    usedAt.toISOString(),
  ]);
  if (fields.length > 0) await redis.hset(keyOf(prefix), new Map(fields));
}

/** @returns when each of a partner's secrets was last used, in that order; null: no use is known */
export async function readLastUsesOf(
  redis: Redis,
  prefix: string,
  { partner, secretIds }: { partner: string; secretIds: readonly string[] },
): Promise<(Date | null)[]> {
  if (secretIds.length === 0) return [];
  const times = await redis.hmget(keyOf(prefix), ...secretIds.map((id) => toField(partner, id)));
  return times.map((usedAt) => (usedAt === null ? null : new Date(usedAt)));
}

export type LastUses = Awaited<ReturnType<typeof readLastUses>>;

/**
 * Reads the last use of every secret.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readLastUses(location: QueueLocation) {
  const { prefix } = location;
  const fields = await withConnection({ ...location, prefix: companionPrefix(prefix, "records") }, (redis) =>
    redis.hgetall(keyOf(prefix)),
  );
  return {
    /** Returns null if no use is known. */
    of(partner: string, secretId: string): Date | null {
      const usedAt = fields[toField(partner, secretId)];
      return usedAt === undefined ? null : new Date(usedAt);
    },
    /** The last use of any of its secrets. Returns null if no use is known. */
    ofPartner(partner: string): Date | null {
      const times = Object.entries(fields).flatMap(([field, usedAt]) =>
        field.startsWith(toField(partner, "")) ? [Date.parse(usedAt)] : [],
      );
      return times.length === 0 ? null : new Date(Math.max(...times));
    },
  };
}

function keyOf(prefix: string): string {
  return `${companionPrefix(prefix, "records")}:last-use`;
}

/** Neither id contains a slash. */
function toField(partner: string, secretId: string): string {
  return `${partner}/${secretId}`;
}

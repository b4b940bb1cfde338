import { Redis } from "ioredis";

/** When a partner last sent something with one of its secrets. Neither the secret nor its digest takes part in it. */
export interface SecretUse {
  partner: string;
  secretId: string;
  usedAt: Date;
}

const connectTimeoutMs = 2_000;

/** One field for each secret. Two processes may overwrite each other with times that are seconds apart. */
export async function writeLastUses(redis: Redis, prefix: string, uses: SecretUse[]): Promise<void> {
  const fields = uses.map(({ partner, secretId, usedAt }): [string, string] => [
    toField(partner, secretId),
    usedAt.toISOString(),
  ]);
  if (fields.length > 0) await redis.hset(toKey(prefix), new Map(fields));
}

/**
 * @returns the time of the last use by {@link toField}
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readLastUses(options: { redisUrl: string; prefix: string }): Promise<LastUses> {
  const redis = new Redis(options.redisUrl, {
    lazyConnect: true,
    connectTimeout: connectTimeoutMs,
    commandTimeout: connectTimeoutMs,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  // What fails here fails the command below too.
  redis.on("error", () => {});
  try {
    await redis.connect();
    const fields = new Map(Object.entries(await redis.hgetall(toKey(options.prefix))));
    return {
      of(partner, secretId) {
        const usedAt = fields.get(toField(partner, secretId));
        return usedAt === undefined ? null : new Date(usedAt);
      },
    };
  } finally {
    redis.disconnect();
  }
}

export interface LastUses {
  /** null: not known to have been used. */
  of(partner: string, secretId: string): Date | null;
}

function toKey(prefix: string): string {
  return `${prefix}:last-use`;
}

/** Neither id has a slash in it. */
function toField(partner: string, secretId: string): string {
  return `${partner}/${secretId}`;
}

import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

/** A secret that an operator has revoked. */
export interface Revocation {
  /** Of the secret, as in the partners file. */
  sha256: string;
  partner: string;
  secretId: string;
}

/**
 * Revocations are kept for good, beside the partners file: an old copy of that may say that the secret never expires.
 * Each takes some 150 bytes.
 */
export async function writeRevocations(redis: Redis, prefix: string, revocations: Revocation[]): Promise<void> {
  const fields = revocations.map(({ sha256, partner, secretId }): [string, string] => [
    sha256,
    `${partner}/${secretId}`,
  ]);
  if (fields.length > 0) await redis.hset(keyOf(prefix), new Map(fields));
}

/** @returns the digests of the secrets */
export async function readRevocations(redis: Redis, prefix: string): Promise<Set<string>> {
  return new Set(await redis.hkeys(keyOf(prefix)));
}

/**
 * Records revocations from a command.
 *
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function recordRevocations(location: QueueLocation, revocations: Revocation[]): Promise<void> {
  const { prefix } = location;
  await withConnection({ ...location, prefix: companionPrefix(prefix, "records") }, (redis) =>
    writeRevocations(redis, prefix, revocations),
  );
}

function keyOf(prefix: string): string {
  return `${companionPrefix(prefix, "records")}:revoked`;
}

import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

const marks = { true: "test", false: "real" } as const;

/**
 * Records with a partner's first event whether the partner is a test partner, for good: the events of one id must never be
 * in two places.
 *
 * @returns whether it is by its first event
 */
export async function claimTestMark(redis: Redis, prefix: string, partner: string, isTest: boolean): Promise<boolean> {
  const before = await redis.set(keyOf(prefix, partner), marks[`${isTest}`], "NX", "GET");
  return before === null ? isTest : before === marks.true;
}

/**
 * Reads whether a partner is a test partner by its first event.
 *
 * @returns null: it has sent no event
 * @throws what ioredis throws when Redis does not answer within 2 s
 */
export async function readTestMark(location: QueueLocation, partner: string): Promise<boolean | null> {
  const { prefix } = location;
  const mark = await withConnection({ ...location, prefix: companionPrefix(prefix, "records") }, (redis) =>
    redis.get(keyOf(prefix, partner)),
  );
  return mark === null ? null : mark === marks.true;
}

function keyOf(prefix: string, partner: string): string {
  return `${companionPrefix(prefix, "records")}:mark:${partner}`;
}

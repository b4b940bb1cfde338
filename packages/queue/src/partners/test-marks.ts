import type { Redis } from "ioredis";
import type { QueueLocation } from "../redis/connect-to-redis.ts";
import { defineScript, runScript } from "../redis/run-script.ts";
import { withConnection } from "../redis/with-connection.ts";
import { companionPrefix } from "../shards/shards.ts";

const marks = { true: "test", false: "real" } as const;

/** Before Redis 7, SET takes NX and GET only one at a time. KEYS: the mark. ARGV: what it is if there is none. */
const claimScript = defineScript(`
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return redis.call('GET', KEYS[1])
`);

/**
 * Records with a partner's first event whether the partner is a test partner, for good: the events of one id must never be
 * in two places.
 *
 * @returns whether it is by its first event
 */
export async function claimTestMark(redis: Redis, prefix: string, partner: string, isTest: boolean): Promise<boolean> {
  return (await runScript(redis, claimScript, [keyOf(prefix, partner)], [marks[`${isTest}`]])) === marks.true;
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

import type { Redis } from "ioredis";

/**
 * The order of receipt across all ingest processes: microseconds of Redis' clock, always larger than the last.
 *
 * `max(clock, last + 1)` keeps it rising when the clock is set back, and when Redis has lost its data the clock alone
 * puts new events behind all old ones, which a counter would not. It stays below 2^53 until the year 2255, so it is
 * exact as a JavaScript number and as a Lua number.
 */
const reserveScript = `
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[1]) or '0')
local first = math.max(clock, last + 1)
redis.call('SET', KEYS[1], string.format('%.0f', first + ARGV[1] - 1))
return string.format('%.0f', first)
`;

/**
 * Reserves `count` consecutive sequence numbers and returns the first.
 *
 * @param prefix the queue's prefix, so that the number lives in the same slot as the queue
 * @throws what ioredis throws when Redis does not answer or refuses
 */
export async function reserveSequence(redis: Redis, prefix: string, count: number): Promise<number> {
  const reply = await redis.eval(reserveScript, 1, `${prefix}:sequence`, count);
  return Number(reply);
}

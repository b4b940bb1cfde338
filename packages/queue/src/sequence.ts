import type { Redis } from "ioredis";

/**
 * How far ahead of the last number the durable bound is set, in microseconds. It is what numbers may jump ahead of the
 * clock by when Redis was restarted, and how often a number costs a write to disk.
 */
const boundAheadUs = 2_000_000;

/**
 * The order of receipt across all ingest processes: microseconds of Redis' clock, always larger than the last.
 *
 * `max(clock, last + 1)` keeps it rising when the clock is set back, and when Redis has lost its data the clock alone
 * puts new events behind all old ones, which a counter would not. It stays below 2^53 until the year 2255, so it is
 * exact as a JavaScript number and as a Lua number.
 *
 * KEYS[1], the bound, is on disk, and no number above it was ever given out. KEYS[2], the last number, is in memory
 * only (REPL_NONE), so that a number costs no fsync of its own: an event would wait for two. It begins with the id of
 * the server's run (INFO). Another run's last number may be older than what that run gave out, so numbers go on after the
 * bound then.
 */
const reserveScript = `
local time = redis.call('TIME')
local clock = time[1] * 1000000 + time[2]
local bound = tonumber(redis.call('GET', KEYS[1]) or '0')
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local lastRun, last = string.match(redis.call('GET', KEYS[2]) or '', '^(%w+):(%d+)$')
last = lastRun == run and tonumber(last) or bound
local first = math.max(clock, last + 1)
local newLast = string.format('%.0f', first + ARGV[1] - 1)
if tonumber(newLast) > bound then
  redis.call('SET', KEYS[1], string.format('%.0f', newLast + ${boundAheadUs}))
end
redis.set_repl(redis.REPL_NONE)
redis.call('SET', KEYS[2], run .. ':' .. newLast)
return string.format('%.0f', first)
`;

/**
 * Reserves `count` consecutive sequence numbers and returns the first.
 *
 * @param prefix the queue's prefix, so that the numbers live in the same slot as the queue
 * @throws what ioredis throws when Redis does not answer or refuses
 */
export async function reserveSequence(redis: Redis, prefix: string, count: number): Promise<number> {
  const reply = await redis.eval(reserveScript, 2, `${prefix}:sequence`, `${prefix}:last-sequence`, count);
  return Number(reply);
}

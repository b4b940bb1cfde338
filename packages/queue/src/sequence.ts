import type { Redis } from "ioredis";
import { createRedisClock, type RedisClock } from "./redis-clock.ts";

/**
 * How far ahead of the host's clock a sequence number may be, in milliseconds. Clocks that are set by NTP differ by far
 * less. Numbers that are ahead do no harm for as long as Redis keeps its data; but after a loss of it, new events would
 * sort before those that had them, for as long as they were ahead.
 */
export const maxAheadMs = 5 * 60_000;

/** Holds the last sequence number that was given out. */
export function sequenceKey(prefix: string): string {
  return `${prefix}:sequence`;
}

/** Nothing was numbered: the number would have been ahead of the host's clock by more than {@link maxAheadMs}. */
export class SequenceTooFarAhead extends Error {
  override name = "SequenceTooFarAhead";
}

/**
 * Defines `takeSequence(lastKey, clock, hostMs, count)` in Lua: takes consecutive sequence numbers and returns the first;
 * nil, and takes none, if they are further ahead of `hostMs`, the clock of the host that asks, than they may be. They are
 * the order of receipt across all ingest processes: microseconds of Redis' clock, always larger than the last.
 *
 * `max(clock, last + 1)` keeps it rising when the clock is set back, and when Redis has lost its data the clock alone
 * puts new events behind all old ones, which a counter would not. It stays below 2^53 until the year 2255, so it is
 * exact as a JavaScript number and as a Lua number.
 *
 * The last number is written by the script that adds the events, so Redis has both on its disk, or neither.
 */
export const takeSequenceInLua = `
local function takeSequence(lastKey, clock, hostMs, count)
  local first = math.max(clock, tonumber(redis.call('GET', lastKey) or '0') + 1)
  local last = first + count - 1
  if last > (hostMs + ${maxAheadMs}) * 1000 then return nil end
  redis.call('SET', lastKey, string.format('%.0f', last))
  return first
end
`;

/**
 * @returns why events are not numbered now, as sentences for an operator; empty: they are
 * @throws what ioredis throws
 */
export async function findSequenceProblems(
  redis: Redis,
  prefix: string,
  clock: Pick<RedisClock, "look"> = createRedisClock(redis),
): Promise<string[]> {
  const [clockMs, last] = await Promise.all([clock.look(), redis.get(sequenceKey(prefix))]);
  const hostMs = Date.now();
  const clockAheadMs = Math.round(clockMs - hostMs);
  if (clockAheadMs > maxAheadMs)
    return [`Redis' clock is ${toMinutes(clockAheadMs)} ahead of this host's. Set both clocks right.`];
  const lastAheadMs = Math.round(Number(last ?? 0) / 1_000 - hostMs);
  if (lastAheadMs > maxAheadMs)
    return [
      `The last sequence number is ${toMinutes(lastAheadMs)} ahead of this host's clock. If that clock is right, see "The sequence is far ahead" in docs/operations.md.`,
    ];
  return [];
}

/** Whole ones, since what is said in other words than at the last look is logged again. */
function toMinutes(ms: number): string {
  return `${Math.floor(ms / 60_000)} minutes`;
}

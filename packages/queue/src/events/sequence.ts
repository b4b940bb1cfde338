import type { Redis } from "ioredis";
import { createRedisClock, type RedisClock } from "../redis/clock.ts";

/**
 * How far a sequence number may be ahead of the host's clock or behind it, in milliseconds. Clocks synchronized by NTP
 * differ by far less. Numbers that are ahead do no harm as long as Redis keeps its data. But if it loses the data, new
 * events would be ordered before those with such numbers until the clock has caught up. The first number after such a loss
 * must not be behind: new events would be ordered before stored ones, or even before the log, and not be applied.
 */
export const maxDeviationMs = 5 * 60_000;

/** The key of the last assigned sequence number. */
export function sequenceKey(prefix: string): string {
  return `${prefix}:sequence`;
}

/** No number was assigned, because it would have been ahead of the host's clock by more than {@link maxDeviationMs}. */
export class SequenceTooFarAhead extends Error {
  override name = "SequenceTooFarAhead";
}

/** No number was assigned, because it would have been the first, and as far behind the host's clock. */
export class SequenceTooFarBehind extends Error {
  override name = "SequenceTooFarBehind";
}

/**
 * Defines `takeSequence(lastKey, clock, hostMs, count)` in Lua. It assigns consecutive sequence numbers and returns the
 * first. If they would be too far from `hostMs`, the clock of the calling host, it assigns none and returns nil and why.
 * The numbers are the order of receipt across all ingest processes: microseconds of Redis' clock, always larger than
 * the last number.
 *
 * `max(clock, last + 1)` keeps the sequence increasing when the clock is set back. After Redis has lost its data, the
 * clock alone orders new events after all old ones, which a counter would not. The numbers stay below 2^53 until the
 * year 2255, so they are exact as JavaScript and Lua numbers.
 *
 * The script that adds the events also writes the last number, so Redis has both on disk or neither.
 */
export const takeSequenceInLua = `
local function takeSequence(lastKey, clock, hostMs, count)
  local known = redis.call('GET', lastKey)
  local first = math.max(clock, tonumber(known or '0') + 1)
  local last = first + count - 1
  if last > (hostMs + ${maxDeviationMs}) * 1000 then return nil, 'too far ahead' end
  if not known and first < (hostMs - ${maxDeviationMs}) * 1000 then return nil, 'too far behind' end
  redis.call('SET', lastKey, string.format('%.0f', last))
  return first
end
`;

/**
 * Finds reasons why no sequence numbers can be assigned.
 *
 * @returns sentences for an operator; empty if there are none
 * @throws what ioredis throws
 */
export async function findSequenceProblems(
  redis: Redis,
  prefix: string,
  clock: Pick<RedisClock, "read"> = createRedisClock(redis),
): Promise<string[]> {
  const [clockMs, last] = await Promise.all([clock.read(), redis.get(sequenceKey(prefix))]);
  const hostMs = Date.now();
  const clockAheadMs = Math.round(clockMs - hostMs);
  if (clockAheadMs > maxDeviationMs)
    return [`Redis' clock is ${toMinutes(clockAheadMs)} ahead of this host's. Correct the wrong clock.`];
  const lastAheadMs = Math.round(Number(last ?? 0) / 1_000 - hostMs);
  if (lastAheadMs > maxDeviationMs)
    return [
      `The last sequence number is ${toMinutes(lastAheadMs)} ahead of this host's clock. If that clock is ` +
        `right, see "The sequence is far ahead or behind" in docs/runbook.md.`,
    ];
  // After a last number, the next ones are in order whatever the clock says.
  if (last === null && clockAheadMs < -maxDeviationMs)
    return [
      `Redis has no data, and its clock is ${toMinutes(-clockAheadMs)} behind this host's. Correct the wrong clock.`,
    ];
  return [];
}

/** Formats whole minutes, because a problem whose text changes between two checks is logged again. */
function toMinutes(ms: number): string {
  return `${Math.floor(ms / 60_000)} minutes`;
}

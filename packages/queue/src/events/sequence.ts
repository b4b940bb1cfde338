import { ClockLimit, describeDifference, maxClockDifferenceMs } from "@booking-events/runtime";
import type { Redis } from "ioredis";
import { createRedisClock, type RedisClock } from "../redis/clock.ts";

/** The key of the last assigned sequence number. */
export function sequenceKey(prefix: string): string {
  return `${prefix}:sequence`;
}

/** No number was assigned, because it would have been ahead of the host's clock by more than five minutes. */
export class SequenceTooFarAhead extends Error {
  override name = "SequenceTooFarAhead";
}

/** No number was assigned, because Redis' clock is as far behind the host's. */
export class SequenceTooFarBehind extends Error {
  override name = "SequenceTooFarBehind";
}

/**
 * Defines `takeSequence(lastKey, clock, hostMs, count)` in Lua. It assigns consecutive sequence numbers and returns the
 * first. If they or Redis' clock would be too far from `hostMs`, the clock of the calling host, it assigns none and
 * returns nil and why. The numbers are the order of receipt across all ingest processes: microseconds of Redis' clock,
 * always larger than the last number.
 *
 * `max(clock, last + 1)` keeps the sequence increasing when the clock is set back. After Redis has lost its data, the
 * clock alone orders new events after all old ones, which a counter would not. The numbers stay below 2^53 until the
 * year 2255, so they are exact as JavaScript and Lua numbers.
 *
 * A wrong number leaves a trace. One that is ahead supersedes later events if Redis loses its data. One that is behind
 * loses to what has its time from elsewhere, such as an import, or is older than the log. And an ingest whose clock is
 * wrong gives events ids of another month, in which nobody looks for what they repeat.
 *
 * The script that adds the events also writes the last number, so Redis has both on disk or neither.
 */
export const takeSequenceInLua = `
local function takeSequence(lastKey, clock, hostMs, count)
  local first = math.max(clock, tonumber(redis.call('GET', lastKey) or '0') + 1)
  local last = first + count - 1
  if last > (hostMs + ${maxClockDifferenceMs}) * 1000 then return nil, 'too far ahead' end
  if clock < (hostMs - ${maxClockDifferenceMs}) * 1000 then return nil, 'too far behind' end
  redis.call('SET', lastKey, string.format('%.0f', last))
  return first
end
`;

/** Judges again and again whether sequence numbers can be assigned. */
export class SequenceCheck {
  readonly #clock = new ClockLimit();
  readonly #last = new ClockLimit();

  /**
   * Finds reasons why no sequence numbers can be assigned.
   *
   * @returns sentences for an operator; empty if there are none
   * @throws what ioredis throws
   */
  async findProblems(
    redis: Redis,
    prefix: string,
    clock: Pick<RedisClock, "read"> = createRedisClock(redis),
  ): Promise<string[]> {
    const [clockMs, last] = await Promise.all([clock.read(), redis.get(sequenceKey(prefix))]);
    const hostMs = Date.now();
    const clockAheadMs = this.#clock.judge(clockMs - hostMs);
    // A number that is behind says that nothing was received for a while.
    const lastAheadMs = this.#last.judge(Math.max(Number(last ?? 0) / 1_000 - hostMs, 0));
    if (clockAheadMs !== null) return [describeClock(clockAheadMs)];
    return lastAheadMs === null ? [] : [describeLast(lastAheadMs)];
  }
}

function describeClock(aheadMs: number): string {
  const direction = aheadMs > 0 ? "ahead of" : "behind";
  return `Redis' clock is ${describeDifference(aheadMs)} ${direction} this host's. Correct the wrong clock.`;
}

function describeLast(aheadMs: number): string {
  return (
    `The last sequence number is ${describeDifference(aheadMs)} ahead of this host's clock. If that clock is ` +
    `right, see "The sequence is far ahead or behind" in docs/runbook.md.`
  );
}

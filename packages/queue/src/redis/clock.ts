import { ServerClock } from "@booking-events/runtime";
import type { Redis } from "ioredis";

export type RedisClock = ReturnType<typeof createRedisClock>;

/** An answer that took longer is too imprecise. */
export const clockPrecisionMs = 100;
/**
 * Two clocks drift apart less than this between two checks. A larger difference means that this machine was suspended
 * or Redis' clock was set. It must be left for the next events to detect by their deadline. If the estimate were
 * updated before they are sent to Redis, events that have waited since before the suspension would look new.
 */
const maxDriftMs = clockPrecisionMs;

/**
 * Estimates Redis' clock, relative to this process's monotonic clock.
 *
 * @param onTimeLost called with the time by which this process's clock has fallen behind Redis' since the previous
 *   answer
 */
export function createRedisClock(redis: Redis, onTimeLost: (lostMs: number) => void = () => {}) {
  let knownAheadMs: number | undefined;
  let newest: ServerClock | undefined;
  let knownServer: string | undefined;

  // The clock of another server may differ. The difference would look like lost time.
  redis.on("ready", () => {
    const server = `${redis.stream.remoteAddress}:${redis.stream.remotePort}`;
    if (server !== knownServer) knownAheadMs = undefined;
    knownServer = server;
  });

  function setAhead(aheadMs: number): void {
    if (knownAheadMs !== undefined) onTimeLost(aheadMs - knownAheadMs);
    knownAheadMs = aheadMs;
  }

  async function readTime(): Promise<number> {
    const [seconds = 0, microseconds = 0] = await redis.time();
    const clockMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    newest = new ServerClock(clockMs);
    return clockMs;
  }

  return {
    /** Reads Redis' clock, and updates the estimate if the clocks have only drifted apart. @returns epoch milliseconds */
    async read(): Promise<number> {
      const askedAtMs = performance.now();
      const clockMs = await readTime();
      const answeredAtMs = performance.now();
      const aheadMs = clockMs - answeredAtMs;
      const isDrift = Math.abs(aheadMs - (knownAheadMs ?? aheadMs)) <= maxDriftMs;
      if (isDrift && answeredAtMs - askedAtMs < clockPrecisionMs) setAhead(aheadMs);
      return clockMs;
    },
    /** Returns how far Redis' clock is ahead of `performance.now()`. Asks Redis if there is no estimate yet. */
    async aheadMs(): Promise<number> {
      if (knownAheadMs !== undefined) return knownAheadMs;
      const aheadMs = (await readTime()) - performance.now();
      setAhead(aheadMs);
      return aheadMs;
    },
    /** @param clockMs the current time of Redis' clock, from the answer to another command */
    learn: (clockMs: number) => setAhead(clockMs - performance.now()),
    /** Returns the clock as it was last read; undefined: never. */
    newest: () => newest,
  };
}

import type { Redis } from "ioredis";

/** What this process knows of Redis' clock, by its own monotonic one. */
export interface RedisClock {
  /** Asks Redis, and follows what it says if the clocks have only drifted apart since. @returns epoch milliseconds */
  look(): Promise<number>;
  /** How far Redis' clock is ahead of `performance.now()`. Asks Redis if nothing is known of it yet. */
  aheadMs(): Promise<number>;
  /** @param clockMs what Redis' clock shows now, in an answer to something else */
  learn(clockMs: number): void;
}

/** An answer that took longer tells too little of what Redis' clock shows now. */
export const clockPrecisionMs = 100;
/**
 * Two clocks drift apart by less than this from one look to the next. If it is more, this machine was suspended or Redis'
 * clock was set. That is for the next events to find out, by their deadline: with the clocks compared again before they
 * go to Redis, those that have waited since before the suspension would pass for new.
 */
const maxDriftMs = clockPrecisionMs;

/** @param onTimeLost told how far this process's clock has fallen behind Redis' since the answer before */
export function createRedisClock(redis: Redis, onTimeLost: (lostMs: number) => void = () => {}): RedisClock {
  let knownAheadMs: number | undefined;

  function setAhead(aheadMs: number): void {
    if (knownAheadMs !== undefined) onTimeLost(aheadMs - knownAheadMs);
    knownAheadMs = aheadMs;
  }

  const read = async () => toMilliseconds(await redis.time());

  return {
    async look() {
      const askedAtMs = performance.now();
      const clockMs = await read();
      const answeredAtMs = performance.now();
      const aheadMs = clockMs - answeredAtMs;
      const isDrift = Math.abs(aheadMs - (knownAheadMs ?? aheadMs)) <= maxDriftMs;
      if (isDrift && answeredAtMs - askedAtMs < clockPrecisionMs) setAhead(aheadMs);
      return clockMs;
    },
    async aheadMs() {
      if (knownAheadMs !== undefined) return knownAheadMs;
      const aheadMs = (await read()) - performance.now();
      setAhead(aheadMs);
      return aheadMs;
    },
    learn: (clockMs) => setAhead(clockMs - performance.now()),
  };
}

function toMilliseconds([seconds = 0, microseconds = 0]: number[]): number {
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
}

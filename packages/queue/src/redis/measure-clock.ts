import type { Redis } from "ioredis";

export interface MeasuredClock {
  /** How far Redis' clock is ahead of this host's. */
  clockAheadMs: number;
  /** How wrong that may be: half of the time that the answer took. */
  clockErrorMs: number;
}

/** Returns the best of several tries. */
export async function measureClock(redis: Redis, tries: number): Promise<MeasuredClock> {
  let best = { clockAheadMs: 0, clockErrorMs: Number.POSITIVE_INFINITY };
  for (let tried = 0; tried < tries; tried += 1) {
    const startedAtMs = performance.now();
    const [seconds, microseconds] = (await redis.time()) as unknown as [string, string];
    const clockErrorMs = (performance.now() - startedAtMs) / 2;
    const redisMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    // Not by `performance.timeOrigin`, since this host's clock may have been set since.
    const clockAheadMs = redisMs - (Date.now() - clockErrorMs);
    if (clockErrorMs < best.clockErrorMs) best = { clockAheadMs, clockErrorMs };
  }
  return best;
}

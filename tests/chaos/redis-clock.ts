import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

/** The clock by which Redis goes. It can be set while Redis runs; this machine's stays as it is. */
export interface RedisClock {
  /** For the process whose clock it is. */
  environment: Readonly<Record<string, string>>;
  /** @param aheadMs of this machine's clock; negative: behind it */
  set(aheadMs: number): Promise<void>;
}

const lookIntervalMs = 100;
const lookTimeoutMs = 1_000;
const showTimeoutMs = 60_000;
const precisionMs = 500;

/** @param faketime where libfaketime is */
export async function createRedisClock(dir: string, faketime: string): Promise<RedisClock> {
  const file = join(dir, "redis-clock");
  const clock: RedisClock = {
    environment: {
      // Debian's Redis has jemalloc, which asks for the time before libfaketime can tell it. With libc's malloc in
      // front of it, it is not asked.
      LD_PRELOAD: `${faketime} libc.so.6`,
      FAKETIME_TIMESTAMP_FILE: file,
      // In seconds. Without it, Redis would read the file several times for each command of its append-only file.
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
    async set(aheadMs) {
      // Redis reads it once a second, so it must be whole at any time.
      await writeFile(`${file}.new`, `${aheadMs < 0 ? "" : "+"}${aheadMs / 1_000}`);
      await rename(`${file}.new`, file);
    },
  };
  await clock.set(0);
  return clock;
}

/**
 * Resolves when Redis' TIME is as far ahead of this machine's clock as that, which takes a frozen one until it goes on.
 *
 * @throws when it does not become so
 */
export async function untilClockShown(redisUrl: string, aheadMs: number, signal: AbortSignal): Promise<void> {
  const redis = new Redis(redisUrl, { retryStrategy: () => lookIntervalMs, commandTimeout: lookTimeoutMs });
  redis.on("error", () => {});
  const endAtMs = performance.now() + showTimeoutMs;
  try {
    while (performance.now() < endAtMs && !signal.aborted) {
      const [seconds = 0, microseconds = 0] = await redis.time().catch(() => []);
      const shownMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - Date.now();
      if (Math.abs(shownMs - aheadMs) < precisionMs) return;
      await sleep(lookIntervalMs);
    }
    signal.throwIfAborted();
    throw new Error(`Redis' TIME did not become ${aheadMs} ms ahead, so this was no run with clock steps.`);
  } finally {
    redis.disconnect();
  }
}

/** libfaketime makes these for child processes, which Redis has none of, and would leave them behind when killed. */
export async function removeSharedMemory(redisPid: number): Promise<void> {
  for (const name of [`faketime_shm_${redisPid}`, `sem.faketime_sem_${redisPid}`])
    await rm(join("/dev/shm", name), { force: true });
}

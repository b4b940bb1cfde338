import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness/wait-for";
import { Redis } from "ioredis";

const lookIntervalMs = 100;
const lookTimeoutMs = 1_000;
const showTimeoutMs = 60_000;
const precisionMs = 500;

/**
 * A clock for a Redis, which can be set while Redis runs. The machine's clock stays as it is.
 *
 * @param faketime where libfaketime is
 */
export async function createRedisClock(dir: string, faketime: string) {
  const file = join(dir, "redis-clock");
  await write(0);

  async function write(aheadMs: number): Promise<void> {
    // Redis reads the file once a second, so it must be complete at any time.
    await writeFile(`${file}.new`, `${aheadMs < 0 ? "" : "+"}${aheadMs / 1_000}`);
    await rename(`${file}.new`, file);
  }

  return {
    /** For the process whose clock it is. */
    environment: {
      // Debian's Redis uses jemalloc, which asks for the time before libfaketime can answer. libc's malloc does not.
      LD_PRELOAD: `${faketime} libc.so.6`,
      FAKETIME_TIMESTAMP_FILE: file,
      // In seconds. Without it, Redis would read the file several times for each command of its append-only file.
      FAKETIME_CACHE_DURATION: "1",
      FAKETIME_DONT_FAKE_MONOTONIC: "1",
    },
    /**
     * Resolves when Redis' TIME shows it. A frozen Redis does not before it goes on.
     *
     * @param aheadMs of this machine's clock; negative: behind it
     * @throws when Redis' TIME does not change to it
     */
    async set(redisUrl: string, aheadMs: number, signal: AbortSignal): Promise<void> {
      await write(aheadMs);
      await untilShown(redisUrl, aheadMs, signal);
    },
  };
}

async function untilShown(redisUrl: string, aheadMs: number, signal: AbortSignal): Promise<void> {
  const redis = new Redis(redisUrl, { retryStrategy: () => lookIntervalMs, commandTimeout: lookTimeoutMs });
  redis.on("error", () => {});
  const isShown = async () => {
    if (signal.aborted) return true;
    const [seconds, microseconds] = await redis.time();
    const shownMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000 - Date.now();
    return Math.abs(shownMs - aheadMs) < precisionMs;
  };
  try {
    await waitFor(isShown, { timeoutMs: showTimeoutMs, intervalMs: lookIntervalMs });
  } catch (error) {
    throw new Error(`Redis' clock was not set ${aheadMs} ms ahead: this run proves nothing.`, { cause: error });
  } finally {
    redis.disconnect();
  }
}

/** libfaketime creates these for child processes, which Redis does not have, and leaves them when Redis is killed. */
export async function removeSharedMemory(redisPid: number): Promise<void> {
  for (const name of [`faketime_shm_${redisPid}`, `sem.faketime_sem_${redisPid}`])
    await rm(join("/dev/shm", name), { force: true });
}

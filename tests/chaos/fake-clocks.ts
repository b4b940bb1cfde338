import { FakeClock } from "@booking-events/harness/fake-clock";
import { waitFor } from "@booking-events/harness/wait-for";
import { Redis } from "ioredis";
import type pg from "pg";
import type { TargetName } from "./fault-plan.ts";

const lookIntervalMs = 100;
const lookTimeoutMs = 1_000;
const showTimeoutMs = 60_000;

interface TargetClock {
  clock: FakeClock;
  /** Rejects while the target does not answer. */
  read: () => Promise<number>;
  precisionMs: number;
}

/** The clocks of all servers and processes, each of which can be set by itself. */
export class FakeClocks {
  readonly #faketime: string;
  readonly #clocks = new Map<TargetName, TargetClock>();

  /** @param faketime where libfaketime is */
  constructor(faketime: string) {
    this.#faketime = faketime;
  }

  /** @returns the variables of the process that gets the clock */
  async add(target: TargetName, read: TargetClock["read"]): Promise<Readonly<Record<string, string>>> {
    const kind = target === "redis" || target === "postgres" ? target : "node";
    const clock = await FakeClock.create(this.#faketime, kind);
    // A process shows its clock to others as a date of HTTP, in whole seconds.
    this.#clocks.set(target, { clock, read, precisionMs: kind === "node" ? 2_500 : 500 });
    return clock.environment;
  }

  has(target: TargetName): boolean {
    return this.#clocks.has(target);
  }

  /**
   * Resolves when the target shows it. A frozen one does not before it goes on.
   *
   * @param aheadMs of this machine's clock; negative: behind it
   * @throws when the target's clock does not change to it
   */
  async set(target: TargetName, aheadMs: number, signal: AbortSignal): Promise<void> {
    const { clock, read, precisionMs } = this.#clocks.get(target) ?? unknown(target);
    await clock.set(aheadMs);
    const isShown = async () => signal.aborted || Math.abs((await read()) - Date.now() - aheadMs) < precisionMs;
    try {
      await waitFor(isShown, { timeoutMs: showTimeoutMs, intervalMs: lookIntervalMs });
    } catch (error) {
      throw new Error(`The clock of ${target} was not set ${aheadMs} ms ahead: this run proves nothing.`, {
        cause: error,
      });
    }
  }

  async remove(): Promise<void> {
    await Promise.all(Array.from(this.#clocks.values(), ({ clock }) => clock.remove()));
  }
}

function unknown(target: TargetName): never {
  throw new Error(`The clock of ${target} can't be set.`);
}

/** Reads Redis' TIME, on a connection of its own each time. */
export async function readRedisClock(url: string): Promise<number> {
  const redis = new Redis(url, { lazyConnect: true, retryStrategy: null, commandTimeout: lookTimeoutMs });
  redis.on("error", () => {});
  try {
    await redis.connect();
    const [seconds, microseconds] = await redis.time();
    return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
  } finally {
    redis.disconnect();
  }
}

export async function readPostgresClock(pool: pg.Pool): Promise<number> {
  const { rows } = await pool.query<{ ms: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms",
  );
  return rows[0]?.ms ?? Number.NaN;
}

export async function readProcessClock(adminPort: number): Promise<number> {
  const answer = await fetch(`http://127.0.0.1:${adminPort}/livez`, { signal: AbortSignal.timeout(lookTimeoutMs) });
  await answer.body?.cancel();
  return Date.parse(answer.headers.get("Date") ?? "");
}

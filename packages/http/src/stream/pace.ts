import { DeadlineExceeded, withDeadline } from "@booking-events/runtime";

export const paceLimits = {
  /** How long one side may keep us waiting in all, whatever it sends or reads. */
  graceMs: 10_000,
  /** For this many bytes it may keep us waiting for a second more. */
  bytesPerSecond: 16_384,
  /** A connection that has died in silence looks like this, however much it has sent before. */
  longestWaitMs: 60_000,
  /** In all, at any rate. */
  inAllMs: Number.POSITIVE_INFINITY,
};

/** Thrown when the other side of a connection is too slow. */
export class TooSlow extends Error {
  override name = "TooSlow";
}

/** Requires a minimum rate of a client that sends lines or reads those of the answer. What takes us time does not count. */
export class Pace {
  readonly #limits: typeof paceLimits;
  #waitedMs = 0;
  #bytes = 0;

  constructor(limits: Partial<typeof paceLimits> = {}) {
    this.#limits = { ...paceLimits, ...limits };
  }

  /** Counts what the client has sent or read. */
  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** @throws TooSlow if the client takes too long; what the promise rejects with */
  async wait<Result>(forClient: Promise<Result>): Promise<Result> {
    const { graceMs, bytesPerSecond, longestWaitMs, inAllMs } = this.#limits;
    const startedAtMs = performance.now();
    const remainingMs = Math.min(graceMs + (this.#bytes / bytesPerSecond) * 1_000, inAllMs) - this.#waitedMs;
    try {
      return await withDeadline(forClient, Math.min(Math.max(remainingMs, 0), longestWaitMs));
    } catch (error) {
      throw error instanceof DeadlineExceeded ? new TooSlow() : error;
    } finally {
      this.#waitedMs += performance.now() - startedAtMs;
    }
  }
}

import { DeadlineExceeded, withDeadline } from "@booking-events/runtime";

export const paceLimits = {
  /** How long one side may keep us waiting in all, whatever it sends or reads. */
  graceMs: 10_000,
  /** For this many bytes it may keep us waiting for a second more. */
  bytesPerSecond: 16_384,
};

/** Thrown when the other side of a connection is too slow. */
export class TooSlow extends Error {
  override name = "TooSlow";
}

/** Requires a minimum rate of a client that sends a list or reads its answer. What takes us time does not count. */
export class Pace {
  readonly #limits: typeof paceLimits;
  #waitedMs = 0;
  #bytes = 0;

  constructor(limits = paceLimits) {
    this.#limits = limits;
  }

  /** Counts what the client has sent or read. */
  add(bytes: number): void {
    this.#bytes += bytes;
  }

  /** @throws TooSlow if the client takes too long; what the promise rejects with */
  async wait<Result>(forClient: Promise<Result>): Promise<Result> {
    const { graceMs, bytesPerSecond } = this.#limits;
    const startedAtMs = performance.now();
    const remainingMs = graceMs + (this.#bytes / bytesPerSecond) * 1_000 - this.#waitedMs;
    try {
      return await withDeadline(forClient, Math.max(remainingMs, 0));
    } catch (error) {
      throw error instanceof DeadlineExceeded ? new TooSlow() : error;
    } finally {
      this.#waitedMs += performance.now() - startedAtMs;
    }
  }
}

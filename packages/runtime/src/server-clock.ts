import { maxClockDifferenceMs } from "./clock-limit.ts";

/**
 * The clock of a server, as an answer showed it. A monotonic clock tells how much time has passed since, so if this
 * host's clock is set, that shows at once.
 */
export class ServerClock {
  readonly #aheadOfMonotonicMs: number;

  /** @param clockMs what it shows now, in milliseconds since 1970 */
  constructor(clockMs: number) {
    this.#aheadOfMonotonicMs = clockMs - performance.now();
  }

  /** How far this host's clock is ahead of it now. */
  hostAheadMs(): number {
    return Date.now() - performance.now() - this.#aheadOfMonotonicMs;
  }
}

/**
 * Whether this host's clock is known to differ from all servers' by more than the limit.
 *
 * @param clocks those of the servers that have answered
 */
export function isHostClockWrong(clocks: ServerClock[]): boolean {
  return clocks.length > 0 && clocks.every((clock) => Math.abs(clock.hostAheadMs()) > maxClockDifferenceMs);
}

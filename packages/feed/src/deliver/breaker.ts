/** So many different bookings must fail one after the other. */
const failuresToOpen = 5;
const firstProbeMs = 1_000;
const longestProbeMs = 60_000;

/** What a failed attempt costs the booking: `counts`: an attempt; `free`: none; `opens`: none, and those before it none. */
export type FailureCost = "counts" | "free" | "opens";

/**
 * Tells a consumer that is down from bookings that it can't take. If it seems to be down, nothing is handed to it but one
 * booking at a time, after growing pauses. Once it takes one, it gets as many at once as before, beginning with one.
 *
 * A booking that has failed before says nothing about the consumer, so it counts neither way. Otherwise a few bookings
 * that always fail would stop all others.
 */
export class Breaker {
  readonly #most: number;
  /** Of bookings that had not failed before, in a row. */
  #failedInARow = 0;
  #probes: number | undefined;
  #limit: number;

  /** @param most how many attempts may be made at a time */
  constructor(most: number, { isOpen }: { isOpen: boolean } = { isOpen: false }) {
    this.#most = most;
    this.#limit = most;
    if (isOpen) this.#open();
  }

  get isOpen(): boolean {
    return this.#probes !== undefined;
  }

  /** How many attempts may be made at a time. */
  get limit(): number {
    return this.#limit;
  }

  /** How many probes have failed. */
  get probes(): number {
    return this.#probes ?? 0;
  }

  /** From the last failure to the next probe. Each pause comes twice, since two bookings tell more than one. */
  get probePauseMs(): number {
    return Math.min(firstProbeMs * 2 ** Math.floor(this.probes / 2), longestProbeMs);
  }

  succeed(): "closes" | "stays" {
    const wasOpen = this.isOpen;
    this.#failedInARow = 0;
    this.#probes = undefined;
    this.#limit = wasOpen ? 1 : Math.min(this.#limit * 2, this.#most);
    return wasOpen ? "closes" : "stays";
  }

  /**
   * @param failure.isProbe it was made because the breaker was open
   * @param failure.hasFailedBefore an earlier attempt of the booking has failed
   */
  fail({ isProbe, hasFailedBefore }: { isProbe: boolean; hasFailedBefore: boolean }): FailureCost {
    if (this.#probes !== undefined) {
      if (isProbe) this.#probes += 1;
      return "free";
    }
    if (hasFailedBefore) return "counts";
    this.#failedInARow += 1;
    if (this.#failedInARow < failuresToOpen) return "counts";
    this.#open();
    return "opens";
  }

  #open(): void {
    this.#failedInARow = 0;
    this.#probes = 0;
    this.#limit = 1;
  }
}

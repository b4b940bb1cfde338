import { pauseAfter } from "./back-off.ts";
import type { BookingQueues } from "./booking-queues.ts";
import type { Breaker } from "./breaker.ts";
import type { RetryPolicy } from "./consumer-options.ts";
import type { DeliveryRow, WaitingDelivery } from "./deliveries.ts";
import type { Handing, LookedUp } from "./look-up-delivery.ts";
import type { PendingProgress } from "./pending-progress.ts";
import type { Task, Turns } from "./turns.ts";

/** What the failure of a delivery has led to. */
export interface Parked {
  /** The booking's attempts are used up. */
  isDead: boolean;
  hasOpenedBreaker: boolean;
  /** For so long, nothing is to be handed to the consumer. */
  pauseMs: number;
}

interface Parts {
  breaker: Breaker;
  pending: PendingProgress;
  queues: BookingQueues;
  turns: Turns;
  retry: RetryPolicy;
}

/** Parks bookings whose deliveries fail, each for its own time, and gives attempts back that cost a booking nothing. */
export class Parking {
  readonly #parts: Parts;
  /** What may have failed because the consumer was down, by booking. */
  readonly #inARow = new Map<string, DeliveryRow & { waiting: WaitingDelivery }>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** The consumer takes deliveries. @returns whether it had seemed to be down */
  succeed(): boolean {
    this.#inARow.clear();
    this.#parts.pending.noteAttempt(true);
    if (this.#parts.breaker.succeed() === "stays") return false;
    this.#parts.pending.noteBreaker({ isOpen: false, probeInMs: 0 });
    return true;
  }

  /** The booking waits for another attempt, and everything else of it waits behind. */
  park(
    { bookingId, isProbe, entry }: Task,
    { found }: LookedUp,
    { change, attempt, sinceId }: Handing,
    failure: string,
  ): Parked {
    const hasFailedBefore = found.waiting !== null;
    this.#parts.pending.noteAttempt(false);
    const cost = this.#parts.breaker.fail({ isProbe, hasFailedBefore });
    const attempts = cost === "counts" ? attempt : attempt - 1;
    const pauseMs = cost === "counts" ? pauseAfter(attempts, this.#parts.retry, Math.random()) : 0;
    const waiting = { changeId: change.id, sinceId, attempts, pauseMs, failure };
    const row = { bookingId, doneId: found.doneId, waiting };
    this.#parts.pending.addRow(row);
    entry?.finish();
    if (cost === "counts" && (!hasFailedBefore || this.#inARow.has(bookingId))) this.#inARow.set(bookingId, row);
    if (cost === "opens") this.#giveBack();
    const hasToWait = cost === "opens" || (isProbe && this.#parts.breaker.isOpen);
    return {
      isDead: pauseMs === null,
      hasOpenedBreaker: cost === "opens",
      pauseMs: hasToWait ? this.#waitForProbe() : 0,
    };
  }

  /** The attempts that were lost because the consumer was down. */
  #giveBack(): void {
    for (const row of this.#inARow.values()) {
      const { bookingId, waiting } = row;
      const isTriedAgain = this.#parts.turns.isRunning(bookingId) && !this.#parts.pending.keeps(bookingId);
      if (isTriedAgain) continue;
      if (!this.#parts.queues.isBusy(bookingId)) this.#parts.queues.begin(bookingId);
      this.#parts.pending.addRow({ ...row, waiting: { ...waiting, attempts: waiting.attempts - 1, pauseMs: 0 } });
    }
    this.#inARow.clear();
  }

  #waitForProbe(): number {
    const { probePauseMs } = this.#parts.breaker;
    this.#parts.pending.noteBreaker({ isOpen: true, probeInMs: probePauseMs });
    return probePauseMs;
  }
}

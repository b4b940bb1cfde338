import type { WorkerMetrics } from "../watch/worker-metrics.ts";
import { Aside } from "./apply-aside.ts";
import type { UnreadEvent } from "./read-envelope.ts";
import type { Transactions } from "./transactions.ts";
import {
  type AppliedEvent,
  type Batch,
  type BatchSize,
  groupByPartner,
  rejectEvents,
  resolveEvents,
  WaitingEvents,
} from "./waiting-events.ts";

export interface BatchLimits extends BatchSize {
  maxConcurrentBatches: number;
  /** At most one batch that is not full begins in each interval, so events that arrive one by one share a transaction. */
  interval: Interval;
  /**
   * Events that are applied apart from the batches fail if that takes longer. They hold places in the worker that events
   * in the queue wait for.
   */
  maxAsideMs: number;
}

/** Divides time into equal parts, one of which begins `offsetMs` after the process started. */
interface Interval {
  lengthMs: number;
  offsetMs: number;
}

export interface BatchParts {
  transactions: Pick<Transactions, "applyTogether" | "recoveredAtMs">;
  limits: BatchLimits;
  /** Aborts when the worker stops. Events that wait, and batches that fail, then fail with its reason. */
  signal: AbortSignal;
  metrics: Pick<WorkerMetrics, "observeBatch">;
}

/**
 * Applies events that wait at the same time in one transaction. Events that arrive while batches are being applied, or
 * later in the interval in which one began, form the next batches. So an idle worker applies an event at once, and a busy
 * worker pays for one transaction per batch. Events are parsed when a batch takes them; until then they are kept as text.
 *
 * Two batches never hold events of the same booking at the same time, and the events of a booking keep the order in
 * which they came.
 *
 * Events of a batch that fails, and of bookings that can't be applied together with others, are applied apart from the
 * batches: see {@link Aside}. An event fails only after it has failed twice, the second time alone, or when its group did
 * not end in time.
 */
export class Batches {
  readonly #parts: BatchParts;
  readonly #waiting = new WaitingEvents();
  readonly #aside: Aside;
  #running = 0;
  /** Of `performance.now()`. */
  #nextAtMs = Number.NEGATIVE_INFINITY;
  #startsThisTurn = false;
  #startsLater = false;

  constructor(parts: BatchParts) {
    this.#parts = parts;
    const { transactions, limits, signal } = parts;
    this.#aside = new Aside({
      transactions,
      waiting: this.#waiting,
      maxAsideMs: limits.maxAsideMs,
      signal,
      onTurn: () => this.#startSoon(),
    });
    signal.addEventListener("abort", () => this.#waiting.rejectAll(signal.reason), { once: true });
  }

  /** @throws InvalidEnvelope, LaterVersion; why the event could not be applied; the signal's reason when it aborts */
  async applyInBatch(event: UnreadEvent): Promise<AppliedEvent> {
    this.#parts.signal.throwIfAborted();
    const applied = this.#waiting.add(event);
    this.#startSoon();
    return applied;
  }

  #startSoon(): void {
    const { maxConcurrentBatches, maxEvents } = this.#parts.limits;
    if (this.#startsThisTurn || this.#waiting.count === 0 || this.#running >= maxConcurrentBatches) return;
    const pauseMs = this.#nextAtMs - performance.now();
    if (pauseMs > 0 && this.#waiting.count < maxEvents) this.#startAfter(pauseMs);
    else this.#startThisTurn();
  }

  #startThisTurn(): void {
    this.#startsThisTurn = true;
    // The queue hands over all that came in one answer from Redis within one turn of the event loop.
    setImmediate(() => {
      this.#startsThisTurn = false;
      this.#startBatch();
    });
  }

  #startAfter(pauseMs: number): void {
    if (this.#startsLater) return;
    this.#startsLater = true;
    setTimeout(() => {
      this.#startsLater = false;
      this.#startSoon();
    }, pauseMs);
  }

  #startBatch(): void {
    const batch = this.#waiting.takeBatch(this.#parts.limits);
    // All events that wait depend on events that are being applied. The end of those starts the next batch.
    if (batch.events.length === 0) return;
    this.#nextAtMs = endOfCurrent(this.#parts.limits.interval);
    this.#running += 1;
    void applyBatch(batch, this.#aside, this.#parts).then(() => {
      this.#running -= 1;
      this.#startSoon();
    });
    this.#startSoon();
  }
}

/** Applies the batch in one transaction. What can't be applied so goes aside. Never throws. */
async function applyBatch(batch: Batch, aside: Aside, { transactions, metrics, signal }: BatchParts): Promise<void> {
  metrics.observeBatch({ events: batch.events.length, characters: batch.characters });
  try {
    const outcomes = await transactions.applyTogether(batch.envelopes, { isAlone: false, waitsForLocks: false });
    const left = resolveEvents(batch, outcomes);
    if (left.length > 0) aside.add([left], { waitsForLocks: true });
  } catch {
    if (signal.aborted) rejectEvents(batch.events, signal.reason);
    // If the connection or another transaction was the reason, the second try succeeds.
    else aside.add(groupByPartner(batch.events), { waitsForLocks: false });
  }
}

/** @returns when the interval that has begun ends, on the clock of `performance.now()` */
function endOfCurrent({ lengthMs, offsetMs }: Interval): number {
  const ended = Math.floor((performance.now() - offsetMs) / lengthMs);
  return (ended + 1) * lengthMs + offsetMs;
}

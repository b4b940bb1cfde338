import { type ApplyBatch, createAside } from "./apply-aside.ts";
import type { QueuedEvent } from "./read-envelope.ts";
import {
  type AppliedEvent,
  type Batch,
  type BatchSize,
  groupByPartner,
  rejectEvents,
  resolveEvents,
  takeBatch,
  type WaitingEvent,
} from "./take-batch.ts";

export interface BatchLimits extends BatchSize {
  maxConcurrentBatches: number;
  /** At most one batch that is not full begins in each interval, so events that arrive one by one share a transaction. */
  interval: Interval;
}

/** Divides time into equal parts, one of which begins `offsetMs` after the process started. */
interface Interval {
  lengthMs: number;
  offsetMs: number;
}

const defaultMaxAsideMs = 5_000;

/**
 * Creates a function that applies one event, in a transaction with other events that wait at the same time. Events that
 * arrive while batches are being applied, or later in the interval in which one began, form the next batches. So an idle
 * worker applies an event at once, and a busy worker pays for one transaction per batch. Events are parsed when a batch
 * takes them; until then they are kept as text.
 *
 * Two batches never hold events of the same booking at the same time, and the events of a booking keep the order in
 * which they came.
 *
 * Events of a batch that fails, and of bookings that can't be applied together with others, are applied apart from the
 * batches: see {@link createAside}. An event fails only after it has failed twice, the second time alone, or when its
 * group was not settled in time.
 *
 * @param options.signal aborts when the worker stops. Events that wait, and batches that fail, then fail with its
 *   reason
 */
export function createBatchApplier(options: {
  applyBatch: ApplyBatch;
  limits: BatchLimits;
  signal: AbortSignal;
  maxAsideMs?: number;
  /** Called before each batch is applied. */
  onBatch?: (batch: { events: number; characters: number }) => void;
}): (event: QueuedEvent) => Promise<AppliedEvent> {
  const { applyBatch, limits, signal, maxAsideMs = defaultMaxAsideMs, onBatch } = options;
  let waiting: WaitingEvent[] = [];
  const busy = createBusyBookings();
  const aside = createAside({ applyBatch, maxAsideMs, signal, rejectWaiting, onTurn: startSoon });
  let batches = 0;
  let isStarting = false;
  let nextAtMs = Number.NEGATIVE_INFINITY;
  let isPausing = false;

  function startSoon(): void {
    if (isStarting || waiting.length === 0 || batches >= limits.maxConcurrentBatches) return;
    const pauseMs = nextAtMs - performance.now();
    if (pauseMs > 0 && waiting.length < limits.maxEvents) startAfter(pauseMs);
    else startThisTurn();
  }

  function startThisTurn(): void {
    isStarting = true;
    // The queue hands over all that came in one answer from Redis within one turn of the event loop.
    setImmediate(() => {
      isStarting = false;
      startBatch();
    });
  }

  function startAfter(pauseMs: number): void {
    if (isPausing) return;
    isPausing = true;
    setTimeout(() => {
      isPausing = false;
      startSoon();
    }, pauseMs);
  }

  function startBatch(): void {
    const { batch, left } = takeBatch(waiting, busy.has, limits);
    waiting = left;
    // All events that wait depend on events that are being applied. The end of those starts the next batch.
    if (batch.events.length === 0) return;
    nextAtMs = endOfCurrent(limits.interval);
    void runBatch({ ...batch, events: batch.events.map(busy.hold) });
    startSoon();
  }

  async function runBatch(batch: Batch): Promise<void> {
    batches += 1;
    onBatch?.({ events: batch.events.length, characters: batch.characters });
    try {
      const outcomes = await applyBatch(batch.envelopes, { isAlone: false, waitsForLocks: false });
      const left = resolveEvents(batch, outcomes);
      if (left.length > 0) aside.add([left], { waitsForLocks: true });
    } catch {
      if (signal.aborted) rejectEvents(batch.events, signal.reason);
      // If the connection or another transaction was the reason, the second try succeeds.
      else aside.add(groupByPartner(batch.events));
    }
    batches -= 1;
    startSoon();
  }

  function rejectWaiting(subject: string, error: unknown): void {
    const ofBooking = (event: WaitingEvent) => event.subject === subject;
    rejectEvents(waiting.filter(ofBooking), error);
    waiting = waiting.filter((event) => !ofBooking(event));
  }

  function rejectAllWaiting(): void {
    rejectEvents(waiting, signal.reason);
    waiting = [];
  }
  signal.addEventListener("abort", rejectAllWaiting, { once: true });

  return (event) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      waiting.push({ ...event, resolve, reject });
      startSoon();
    });
}

/** @returns when the interval that has begun ends, on the clock of `performance.now()` */
function endOfCurrent({ lengthMs, offsetMs }: Interval): number {
  const ended = Math.floor((performance.now() - offsetMs) / lengthMs);
  return (ended + 1) * lengthMs + offsetMs;
}

/** The bookings of events that are being applied, in a batch or apart. */
function createBusyBookings() {
  const counts = new Map<string, number>();

  function free(subject: string): void {
    const others = (counts.get(subject) ?? 0) - 1;
    if (others > 0) counts.set(subject, others);
    else counts.delete(subject);
  }

  return {
    has: (subject: string) => counts.has(subject),
    /** The booking is busy until the event that this returns is resolved or rejected. */
    hold(event: WaitingEvent): WaitingEvent {
      const { text, subject } = event;
      counts.set(subject, (counts.get(subject) ?? 0) + 1);
      return {
        text,
        subject,
        resolve(applied) {
          free(subject);
          event.resolve(applied);
        },
        reject(error) {
          free(subject);
          event.reject(error);
        },
      };
    },
  };
}

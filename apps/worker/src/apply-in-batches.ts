import type { Outcome } from "@booking-events/bookings";
import { bookingReferenceOf, type EventEnvelope } from "@booking-events/schema";

interface Waiting {
  envelope: EventEnvelope;
  /** What two transactions would wait for each other about: its booking, and its idempotency key. */
  subjects: string[];
  resolve: (outcome: Outcome) => void;
  reject: (error: unknown) => void;
}

/**
 * Makes a function that applies one event, together with whichever others are at hand: what comes in while batches are
 * being applied makes up the next ones. So an idle worker applies an event at once, and a busy one pays for a
 * transaction once for many events.
 *
 * Events of one booking, or with one idempotency key, are never in two batches at a time, and keep the order in which
 * they came: one of the two transactions would wait for the other, or be done again where the booking is new to both.
 *
 * When a batch fails, it is halved until the events that made it fail stand alone, and only those fail.
 *
 * @param options.applyBatch applies all of the events or none, and returns the outcome of each by its id
 * @param options.signal aborts when the worker stops: events that wait fail with its reason then, and a batch that fails
 *   fails as a whole
 */
export function createBatchApplier(options: {
  applyBatch: (envelopes: EventEnvelope[]) => Promise<ReadonlyMap<string, Outcome>>;
  maxBatchSize: number;
  maxConcurrentBatches: number;
  signal: AbortSignal;
}): (envelope: EventEnvelope) => Promise<Outcome> {
  const { applyBatch, maxBatchSize, maxConcurrentBatches, signal } = options;
  let waiting: Waiting[] = [];
  const busySubjects = new Set<string>();
  let batches = 0;
  let isStarting = false;

  function startSoon(): void {
    if (isStarting || waiting.length === 0 || batches >= maxConcurrentBatches) return;
    isStarting = true;
    // The queue hands over what came out of Redis in one answer within one turn of the event loop.
    setImmediate(() => {
      isStarting = false;
      const batch = takeBatch();
      // All that wait depend on a batch that is being applied. Its end starts them.
      if (batch.length === 0) return;
      void applyBatchOf(batch);
      startSoon();
    });
  }

  function takeBatch(): Waiting[] {
    const batch: Waiting[] = [];
    const left: Waiting[] = [];
    const blocked = new Set<string>();
    for (const event of waiting) {
      const mustWait = event.subjects.some((subject) => busySubjects.has(subject) || blocked.has(subject));
      if (batch.length < maxBatchSize && !mustWait) {
        batch.push(event);
      } else {
        left.push(event);
        for (const subject of event.subjects) blocked.add(subject);
      }
    }
    waiting = left;
    return batch;
  }

  async function applyBatchOf(batch: Waiting[]): Promise<void> {
    const subjects = batch.flatMap((event) => event.subjects);
    batches += 1;
    for (const subject of subjects) busySubjects.add(subject);
    await applyOrHalve(batch);
    for (const subject of subjects) busySubjects.delete(subject);
    batches -= 1;
    startSoon();
  }

  async function applyOrHalve(batch: Waiting[]): Promise<void> {
    try {
      const outcomes = await applyBatch(batch.map(({ envelope }) => envelope));
      for (const { envelope, resolve } of batch) resolve(outcomeOf(envelope, outcomes));
    } catch (error) {
      if (batch.length === 1 || signal.aborted) {
        for (const { reject } of batch) reject(error);
        return;
      }
      const middle = Math.ceil(batch.length / 2);
      await applyOrHalve(batch.slice(0, middle));
      await applyOrHalve(batch.slice(middle));
    }
  }

  function rejectWaiting(): void {
    for (const { reject } of waiting) reject(signal.reason);
    waiting = [];
  }
  signal.addEventListener("abort", rejectWaiting, { once: true });

  return (envelope) =>
    new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      waiting.push({ envelope, subjects: subjectsOf(envelope), resolve, reject });
      startSoon();
    });
}

/** As in the database: both are a partner's own. Neither a partner's id nor an idempotency key holds a space. */
function subjectsOf({ partner, idempotencyKey, payload }: EventEnvelope): string[] {
  const booking = `${partner} booking ${bookingReferenceOf(payload)}`;
  return idempotencyKey === null ? [booking] : [booking, `${partner} key ${idempotencyKey}`];
}

function outcomeOf({ eventId }: EventEnvelope, outcomes: ReadonlyMap<string, Outcome>): Outcome {
  const outcome = outcomes.get(eventId);
  if (outcome === undefined) throw new Error("A batch that was applied has an outcome for each of its events.");
  return outcome;
}

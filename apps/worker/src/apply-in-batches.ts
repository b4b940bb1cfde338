import type { EventEnvelope } from "@booking-events/schema";
import type { Outcome } from "@booking-events/store";

interface Waiting {
  envelope: EventEnvelope;
  resolve: (outcome: Outcome) => void;
  reject: (error: unknown) => void;
}

/**
 * Makes a function that applies one event, together with whichever others are at hand: what comes in while batches are
 * being applied makes up the next ones. So an idle worker applies an event at once, and a busy one pays for a
 * transaction once for many events.
 *
 * When a batch fails, it is halved until the events that made it fail stand alone, and only those fail.
 *
 * @param options.applyBatch applies all of the events or none, and returns the outcome of each by its id
 * @param options.signal aborts when the worker stops: a batch that fails then fails as a whole
 */
export function createBatchApplier(options: {
  applyBatch: (envelopes: EventEnvelope[]) => Promise<ReadonlyMap<string, Outcome>>;
  maxBatchSize: number;
  maxConcurrentBatches: number;
  signal: AbortSignal;
}): (envelope: EventEnvelope) => Promise<Outcome> {
  const { applyBatch, maxBatchSize, maxConcurrentBatches, signal } = options;
  let waiting: Waiting[] = [];
  let batches = 0;
  let isStarting = false;

  function startSoon(): void {
    if (isStarting || waiting.length === 0 || batches >= maxConcurrentBatches) return;
    isStarting = true;
    // The queue hands over what came out of Redis in one answer within one turn of the event loop.
    setImmediate(() => {
      isStarting = false;
      void applyWaiting();
      startSoon();
    });
  }

  async function applyWaiting(): Promise<void> {
    const batch = waiting.slice(0, maxBatchSize);
    waiting = waiting.slice(maxBatchSize);
    batches += 1;
    await applyOrHalve(batch);
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

  return (envelope) =>
    new Promise((resolve, reject) => {
      waiting.push({ envelope, resolve, reject });
      startSoon();
    });
}

function outcomeOf({ eventId }: EventEnvelope, outcomes: ReadonlyMap<string, Outcome>): Outcome {
  const outcome = outcomes.get(eventId);
  if (outcome === undefined) throw new Error("A batch that was applied has an outcome for each of its events.");
  return outcome;
}

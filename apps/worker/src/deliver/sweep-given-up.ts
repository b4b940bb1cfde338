import type { Consumer } from "@booking-events/queue";
import type { Logger } from "@booking-events/runtime";
import { judgeGivenUp, type ProcessOptions } from "./process-delivery.ts";

/**
 * Creates a function that handles what a shard of the queue has given up: events whose workers died repeatedly, and jobs that are
 * not events. Each is applied or becomes a dead letter. The function never throws; the next sweep tries again.
 */
export function createSweep(options: {
  sweepFailed: Consumer["sweepFailed"];
  process: ProcessOptions;
  applyAlone: Parameters<typeof judgeGivenUp>[1]["applyAlone"];
  countFault: () => void;
  logger: Logger;
  signal: AbortSignal;
}): () => Promise<void> {
  const { sweepFailed, process, applyAlone, countFault, logger, signal } = options;

  function onFault(eventId: string, error: unknown): boolean {
    if (signal.aborted) return false;
    countFault();
    logger.error({ eventId, err: error }, "could not handle an event that the queue had given up");
    return true;
  }

  return async function sweep() {
    try {
      const judge = (event: Parameters<typeof judgeGivenUp>[0]) => judgeGivenUp(event, { ...process, applyAlone });
      const count = await sweepFailed({ judge, onFault });
      if (count > 0) logger.warn({ count }, "handled events that the queue had given up");
    } catch (error) {
      if (signal.aborted) return;
      countFault();
      logger.error({ err: error }, "could not look for events that the queue has given up");
    }
  };
}

/** Creates a function that closes dead letters of events that are in the log. It never throws. */
export function createLetterCloser(options: {
  closeLetters: () => Promise<unknown>;
  countFault: () => void;
  logger: Logger;
  signal: AbortSignal;
}): () => Promise<void> {
  const { closeLetters, countFault, logger, signal } = options;
  return async () => {
    try {
      await closeLetters();
    } catch (error) {
      if (signal.aborted) return;
      countFault();
      logger.error({ err: error }, "could not close the dead letters of applied events");
    }
  };
}

import type { Worker } from "./process-delivery.ts";

/** There is rarely such a letter. */
export const letterSweepIntervalMs = 30_000;

/** Closes dead letters of events that are in the log. Never throws; the next sweep tries again. */
export async function sweepDeadLetters({ deadLetters, metrics, logger, signal }: Worker): Promise<void> {
  try {
    await deadLetters.closeLettersOfApplied();
  } catch (error) {
    if (signal.aborted) return;
    metrics.countSweepFault();
    logger.error({ err: error }, "could not close the dead letters of applied events");
  }
}

import { DeadlineExceeded, withDeadline } from "@booking-events/runtime";

/** A probe of /readyz is answered within 2 s, whatever PostgreSQL does. */
const answerLimitMs = 1_000;

/**
 * Makes a check whether PostgreSQL answers. One question is under way at a time, however many ask: a database that is
 * frozen must not take the worker's connections one by one.
 *
 * @param ask rejects when PostgreSQL does not answer, however late
 * @returns resolves to null when it answers, else to why not, after a second at most
 */
export function createDatabaseCheck<Problem>(
  ask: () => Promise<unknown>,
  describe: (error: unknown) => Problem,
): () => Promise<Problem | "no answer" | null> {
  let asking: Promise<Problem | null> | null = null;
  return async () => {
    asking ??= ask()
      .then(() => null, describe)
      .finally(() => {
        asking = null;
      });
    try {
      return await withDeadline(asking, answerLimitMs);
    } catch (error) {
      if (error instanceof DeadlineExceeded) return "no answer";
      throw error;
    }
  };
}

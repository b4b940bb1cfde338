import { DeadlineExceeded, withDeadline } from "./with-deadline.ts";

/** `/readyz` must answer within 2 s, whatever Redis and PostgreSQL do. */
const answerLimitMs = 1_000;

/**
 * Creates a check whether Redis or PostgreSQL answers. Concurrent checks share one question, so a frozen server does not
 * use up the connections.
 *
 * @param ask rejects if the server does not answer, however late
 * @returns a check that resolves to null if the server answers, and otherwise to the problem, after a second at most
 */
export function createServerCheck<Problem>(
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

import { OperationFailure } from "./operation-failure.ts";

/** Between two steps of work that may take long. What was done until then stays done. */
export function stopIfCancelled(signal: AbortSignal | undefined): void {
  // With a cause, since it is not refused: a part of it may be done.
  if (signal?.aborted)
    throw new OperationFailure("It was cancelled. What was done until then stays.", { cause: signal.reason });
}

/**
 * An operation was refused, or failed for a reason outside our code. The message says what happened and what to do, and
 * holds neither a secret nor a guest's value. What failed is the cause; without one, the operation was refused.
 */
export class OperationFailure extends Error {
  override name = "OperationFailure";
}

/** An operator has ended the work. A part of it may be done. */
export class OperationCancelled extends OperationFailure {
  override name = "OperationCancelled";
}

/** Between two steps of work that may take long. What was done until then stays done. */
export function stopIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new OperationCancelled("It was cancelled. What was done until then stays.", { cause: signal.reason });
}

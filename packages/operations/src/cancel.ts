import { OperationFailure } from "./operation-failure.ts";

/** An operator has ended the work. A part of it may be done. */
export class OperationCancelled extends OperationFailure {
  override name = "OperationCancelled";
}

/** Between two steps of work that may take long. What was done until then stays done. */
export function stopIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted)
    throw new OperationCancelled("It was cancelled. What was done until then stays.", { cause: signal.reason });
}

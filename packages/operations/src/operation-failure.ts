/**
 * An operation was refused, or failed for a reason outside our code. The message says what happened and what to do, and
 * holds neither a secret nor a guest's value. What failed is the cause; without one, the operation was refused.
 */
export class OperationFailure extends Error {
  override name = "OperationFailure";
}

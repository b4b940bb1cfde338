import type { BookingChange } from "./read-changes.ts";

/**
 * Changes are missing: the program has not followed for so long that they were removed, or somebody deleted them or
 * restored the database.
 */
export class FeedGapError extends Error {
  override name = "FeedGapError";
  /** The last id before the gap. */
  readonly after: number;

  constructor(name: string, after: number, what: string) {
    super(`The feed has a gap after id ${after}: ${what} Start over from a snapshot: ops feed reset ${name}`);
    this.after = after;
  }
}

/** The reader of this name belongs to another role of the database, which alone may move it. */
export class ForeignReaderError extends Error {
  override name = "ForeignReaderError";

  constructor(name: string, owner: string, role: string) {
    super(
      `The reader ${name} belongs to the role ${owner}, and this program connects as ${role}. Connect as ${owner}, or ` +
        "choose another name.",
    );
  }
}

/**
 * A handler of a change has lost the transaction, so nothing of it counts. After a reconnect,
 * `onError` is asked about the change.
 */
export abstract class TransactionLost extends Error {
  readonly change: BookingChange;

  constructor(change: BookingChange, message: string, cause: unknown) {
    super(message, { cause });
    this.change = change;
  }
}

/** The handler ran no statement in its transaction for longer than `handlerTimeoutMs`. */
export class HandlerTimedOut extends TransactionLost {
  override name = "HandlerTimedOut";

  constructor(change: BookingChange, handlerTimeoutMs: number, cause: unknown) {
    const what = `ran no statement for longer than handlerTimeoutMs (${handlerTimeoutMs} ms)`;
    super(change, `The handler of change ${change.id} ${what}, so PostgreSQL ended its transaction.`, cause);
  }
}

/** The handler committed the transaction or rolled it back. */
export class HandlerEndedTransaction extends TransactionLost {
  override name = "HandlerEndedTransaction";

  constructor(change: BookingChange, cause: unknown) {
    super(change, `The handler of change ${change.id} ended the transaction, which only follow may do.`, cause);
  }
}

/** `onError` has answered `"stop"`, and the cause is what it was asked about; or the cause is what `onError` threw. */
export class HandlingStopped extends Error {
  override name = "HandlingStopped";
  readonly change: BookingChange;

  constructor(change: BookingChange, cause: unknown) {
    super(`The consumer stopped at change ${change.id}.`, { cause });
    this.change = change;
  }
}

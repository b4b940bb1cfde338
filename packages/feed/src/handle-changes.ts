import type { Queryable } from "@booking-events/store";
import pg from "pg";
import type { FeedClient } from "./connect.ts";
import type { BookingChange } from "./read-changes.ts";

export interface HandlingContext {
  /**
   * The transaction that moves the reader past this change. What you write in it is committed together with its place,
   * or not at all. Don't commit it or roll it back.
   */
  client: Queryable;
  signal: AbortSignal;
}

export interface Handled {
  /** The last change that was handled; undefined: none was. */
  lastId: number | undefined;
  /**
   * Why the changes after it were not handled. What the handler has written for this change is rolled back. Undefined: all
   * were, the time is up, or the signal has aborted.
   */
  failure?: { change: BookingChange; error: unknown };
}

/**
 * The handler of a change has lost the transaction, so nothing of it counts: it ran no statement in it for too long, or
 * committed it or rolled it back.
 */
export class TransactionLost extends Error {
  override name = "TransactionLost";
  readonly change: BookingChange;

  constructor(change: BookingChange, cause: unknown) {
    super(`The handler of change ${change.id} ended its transaction, or ran no statement in it for too long.`, {
      cause,
    });
    this.change = change;
  }
}

/**
 * After this time, the transaction is committed and the rest of the page is left to the next one. It has read the log,
 * so maintenance waits for it before it can change partitions.
 */
export const maxHandlingMs = 1_000;

/** Of a transaction that has ended: there is none, or another one, which has no such savepoint. */
const noActiveTransaction = "25P01";
const invalidSavepoint = "3B001";

interface HandlingOptions {
  onChange: (change: BookingChange, context: HandlingContext) => Promise<void>;
  client: FeedClient;
  signal: AbortSignal;
}

/**
 * Gives the changes to the consumer, one after the other, until one can't be handled, the time is up, or the signal
 * aborts. Each has a savepoint, so that its failure doesn't undo those before it.
 *
 * @throws TransactionLost; what the connection throws: roll all of it back
 */
export async function handleChanges(changes: BookingChange[], options: HandlingOptions): Promise<Handled> {
  const { onChange, client, signal } = options;
  const endMs = performance.now() + maxHandlingMs;
  let lastId: number | undefined;
  for (const change of changes) {
    if (signal.aborted || performance.now() > endMs) break;
    await client.query("savepoint change");
    try {
      await unlessIdleTooLong(client, () => onChange(change, { client, signal }));
      // Fails if a statement has failed since the savepoint, even if the handler has caught that.
      await client.query("release savepoint change");
    } catch (error) {
      await rollBackTo(client, change, error);
      if (signal.aborted) break;
      return { lastId, failure: { change, error } };
    }
    lastId = change.id;
  }
  return { lastId };
}

async function rollBackTo(client: FeedClient, change: BookingChange, reason: unknown): Promise<void> {
  try {
    await client.query("rollback to savepoint change");
  } catch (lost) {
    if (client.wasIdleTooLong || hasEndedTransaction(lost)) throw new TransactionLost(change, reason);
    throw lost;
  }
}

/** Work that never settles would otherwise keep its change, and all later ones, without an error. */
function unlessIdleTooLong<Result>(client: FeedClient, work: () => Promise<Result>): Promise<Result> {
  const tooLong = new Promise<never>((_, reject) => {
    client.onIdleTooLong = () => reject(new Error("The work took too long."));
  });
  return Promise.race([tooLong, (async () => work())()]).finally(() => {
    client.onIdleTooLong = undefined;
  });
}

function hasEndedTransaction(error: unknown): boolean {
  return error instanceof pg.DatabaseError && (error.code === noActiveTransaction || error.code === invalidSavepoint);
}

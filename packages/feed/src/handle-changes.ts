import type { Queryable } from "@booking-events/store";
import pg from "pg";
import type { FeedClient } from "./connect.ts";
import { HandlerEndedTransaction, HandlerTimedOut, type TransactionLost } from "./errors.ts";
import { type FeedLogger, nameError } from "./logger.ts";
import type { BookingChange } from "./read-changes.ts";

export interface HandlingContext {
  /**
   * The transaction that moves the reader past this change. What you write in it is committed together with its place,
   * or not at all. Don't commit it or roll it back.
   */
  client: Queryable;
  signal: AbortSignal;
}

/** After a change could not be handled: `retry` it, `skip` it, or `stop` following. */
export type NextStep = "retry" | "skip" | "stop";

export interface Failure {
  /**
   * What `onChange` threw, or a `HandlerTimedOut` or `HandlerEndedTransaction`. Its own writes in the transaction are
   * rolled back.
   */
  error: unknown;
  change: BookingChange;
  /** How often this process has tried, from 1. */
  attempt: number;
}

export interface Handlers {
  onChange: (change: BookingChange, context: HandlingContext) => Promise<void>;
  onError: (failure: Failure, context: HandlingContext) => Promise<NextStep>;
}

export interface Handled {
  /** The last change that was handled or skipped; undefined: none was. */
  lastId: number | undefined;
  /** Why the changes after it were not handled. Undefined: all were, the time is up, or the signal has aborted. */
  failure?: Failure & { nextStep: "retry" | "stop" };
}

/**
 * After this time, the transaction is committed and the rest of the page is left to the next one. It has read the log,
 * so maintenance waits for it before it can change partitions.
 */
export const maxHandlingMs = 1_000;

/** Of a transaction that has ended: there is none, or another one, which has no such savepoint. */
const noActiveTransaction = "25P01";
const invalidSavepoint = "3B001";

interface HandlingOptions extends Handlers, HandlingContext {
  client: FeedClient;
  name: string;
  handlerTimeoutMs: number;
  logger: FeedLogger;
  /** How often a change has failed before. */
  attemptsBefore: (id: number) => number;
  /** A failure that `onError` has not been asked about, because its transaction was gone. */
  undecided: TransactionLost | undefined;
}

/**
 * Gives the changes to the consumer, one after the other, until one can't be handled, the time is up, or the signal
 * aborts. Each has a savepoint, so that its failure doesn't undo those before it.
 *
 * @throws TransactionLost, to be given back as `undecided` on another connection; what the connection throws: roll all
 *   of it back
 */
export async function handleChanges(changes: BookingChange[], options: HandlingOptions): Promise<Handled> {
  const { onChange, onError, client, signal, logger, name, attemptsBefore, undecided } = options;
  const context = { client, signal };
  const endMs = performance.now() + maxHandlingMs;
  let lastId: number | undefined;
  for (const change of changes) {
    if (signal.aborted || performance.now() > endMs) break;
    const isUndecided = undecided?.change.id === change.id;
    await client.query("savepoint change");
    const handling: Attempted<void> = isUndecided
      ? { isDone: false, error: undecided }
      : await attempt(change, options, () => onChange(change, context));
    if (!handling.isDone) {
      if (signal.aborted) break;
      const failure = { error: handling.error, change, attempt: attemptsBefore(change.id) + 1 };
      const decision = await attempt(change, options, () => onError(failure, context));
      const nextStep = decision.isDone ? decision.result : "stop";
      const details = { name, changeId: change.id, attempt: failure.attempt, code: nameError(failure.error) };
      logger.warn(details, `a change could not be handled: ${nextStep}`);
      if (nextStep !== "skip")
        return { lastId, failure: { ...failure, nextStep, ...(decision.isDone ? {} : { error: decision.error }) } };
    }
    lastId = change.id;
  }
  return { lastId };
}

type Attempted<Result> = { isDone: true; result: Result } | { isDone: false; error: unknown };

/** Rolls back what failed work has written, even if the work has caught PostgreSQL's error. */
async function attempt<Result>(
  change: BookingChange,
  { client, handlerTimeoutMs }: HandlingOptions,
  work: () => Promise<Result>,
): Promise<Attempted<Result>> {
  try {
    const result = await unlessIdleTooLong(client, work);
    // Fails if a statement has failed since the savepoint.
    await client.query("release savepoint change");
    return { isDone: true, result };
  } catch (error) {
    try {
      await client.query("rollback to savepoint change");
    } catch (lost) {
      if (client.wasIdleTooLong) throw new HandlerTimedOut(change, handlerTimeoutMs, error);
      if (hasEndedTransaction(lost)) throw new HandlerEndedTransaction(change, error);
      throw lost;
    }
    return { isDone: false, error };
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

import type { Queryable } from "@booking-events/store";
import { type FeedLogger, nameError } from "./logger.ts";
import type { BookingChange } from "./read-changes.ts";

export interface HandlingContext {
  /**
   * The transaction that moves the cursor past this change. What you write in it is committed together with the cursor,
   * or not at all. Don't commit it or roll it back.
   */
  client: Queryable;
  signal: AbortSignal;
}

/** After a change could not be handled: `retry` it, `skip` it, or `stop` following. */
export type NextStep = "retry" | "skip" | "stop";

export interface Failure {
  /** What `onChange` threw. Its own writes in the transaction are rolled back. */
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
  /** Why the changes after it were not handled. Undefined: all were, or the signal has aborted. */
  failure?: Failure & { nextStep: "retry" | "stop" };
}

/**
 * Gives the changes to the consumer, one after the other, until one can't be handled or the signal aborts. Each has a
 * savepoint, so that its failure doesn't undo those before it.
 *
 * @param options.attemptsBefore how often a change has failed before
 * @throws what the connection throws: roll all of it back
 */
export async function handleChanges(
  changes: BookingChange[],
  options: Handlers & HandlingContext & { logger: FeedLogger; name: string; attemptsBefore: (id: number) => number },
): Promise<Handled> {
  const { onChange, onError, client, signal, logger, name, attemptsBefore } = options;
  const context = { client, signal };
  let lastId: number | undefined;
  for (const change of changes) {
    if (signal.aborted) break;
    await client.query("savepoint change");
    const handling = await attempt(client, () => onChange(change, context));
    if (!handling.isDone) {
      if (signal.aborted) break;
      const failure = { error: handling.error, change, attempt: attemptsBefore(change.id) + 1 };
      const decision = await attempt(client, () => onError(failure, context));
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
async function attempt<Result>(client: Queryable, work: () => Promise<Result>): Promise<Attempted<Result>> {
  try {
    const result = await work();
    // Fails if a statement has failed since the savepoint.
    await client.query("release savepoint change");
    return { isDone: true, result };
  } catch (error) {
    await client.query("rollback to savepoint change");
    return { isDone: false, error };
  }
}

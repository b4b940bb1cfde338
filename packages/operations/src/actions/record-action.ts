import { randomUUID } from "node:crypto";
import { describeError, StartError } from "@booking-events/runtime";
import { type ActionToWrite, inTransaction, type Queryable, writeAction } from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationCancelled, OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";

/** A context in which somebody acts. */
export interface ActingContext extends Context {
  /** Who it is, for what is recorded. */
  by: string;
}

/** What is recorded of an action. Neither may hold a guest's value or a secret, nor a text that an operator has written. */
interface Action {
  /** As the command line names it. */
  command: string;
  /** Those that are undefined are left out. */
  arguments: object;
  /** Without a record, it does not begin. */
  mustBeRecorded?: boolean;
}

/**
 * Records an action: before it begins, and how it ended. One whose end could not be recorded has no outcome. If nothing
 * can be recorded, the action goes on, and the operator is told: a secret must be revoked although PostgreSQL is down.
 * But nothing of guests is shown without a record.
 *
 * @param work must not throw an OperationFailure whose message holds a guest's value
 */
export async function recordAction<Result>(
  context: ActingContext,
  action: Action,
  work: (record: ActionRecord) => Promise<Result>,
): Promise<Result> {
  const record = new ActionRecord(context, action);
  await record.begin();
  let result: Result;
  try {
    result = await work(record);
  } catch (error) {
    await record.end(...describeEnd(error));
    throw error;
  }
  await record.end("done", null);
  return result;
}

/** As {@link recordAction}, for work in one transaction, which also records that it is done. */
export function recordTransaction<Result>(
  context: ActingContext,
  action: Action,
  work: (client: Queryable, record: ActionRecord) => Promise<Result>,
): Promise<Result> {
  return recordAction(context, action, (record) =>
    withDatabase(context, (pool) =>
      inTransaction(pool, async (client) => {
        const result = await work(client, record);
        // What is done to test partners' bookings is recorded with the rest, and not beside them.
        if (context.isTest !== true) await record.complete(client);
        return result;
      }),
    ),
  );
}

class ActionRecord {
  /** What has been done so far. It is recorded in the end, however that is. */
  did: object = {};
  readonly #context: Context;
  readonly #action: Omit<ActionToWrite, "outcome" | "problem" | "did">;
  readonly #mustBeRecorded: boolean;
  #hasBegun = false;
  #isComplete = false;

  constructor(context: ActingContext, { command, arguments: given, mustBeRecorded = false }: Action) {
    this.#mustBeRecorded = mustBeRecorded;
    this.#context = { ...context, isTest: false };
    const { isTest: test, by } = context;
    this.#action = { id: randomUUID(), by, command, arguments: test === true ? { ...given, test } : given };
  }

  /** @throws OperationFailure if it must be recorded, and can't be */
  async begin(): Promise<void> {
    try {
      await this.#write(null, null);
      this.#hasBegun = true;
    } catch (error) {
      const why = unlessUnavailable(error);
      if (this.#mustBeRecorded)
        throw new OperationFailure(`Nothing was done, since it could not be recorded. ${why}`, { cause: error });
      // It is recorded in the end, if that can be done then.
    }
  }

  /** Records in the transaction of `client` that the action is done. Its last statement. */
  async complete(client: Queryable): Promise<void> {
    await writeAction(client, { ...this.#action, outcome: "done", problem: null, did: this.did });
    this.#isComplete = true;
  }

  async end(outcome: ActionToWrite["outcome"], problem: string | null): Promise<void> {
    if (outcome === "done" && this.#isComplete) return;
    try {
      await this.#write(outcome, problem);
    } catch (error) {
      const why = unlessUnavailable(error);
      // What was refused has changed nothing. And whoever reads why it failed knows that PostgreSQL is out.
      if (outcome !== "refused" && why !== problem)
        this.#context.notify(
          `${this.#hasBegun ? "How this ended" : "This"} was not recorded in operator_actions. ${why}`,
        );
    }
  }

  #write(outcome: ActionToWrite["outcome"], problem: string | null): Promise<void> {
    return withDatabase(this.#context, (pool) =>
      writeAction(pool, { ...this.#action, outcome, problem, did: this.did }),
    );
  }
}

/** @returns why nothing can be recorded, as a sentence */
function unlessUnavailable(error: unknown): string {
  if (error instanceof StartError) return "DATABASE_URL is missing, or not a URL of PostgreSQL.";
  if (error instanceof OperationFailure) return error.message;
  throw error;
}

function describeEnd(error: unknown): [ActionToWrite["outcome"], string] {
  if (!(error instanceof OperationFailure)) {
    // The message could hold data.
    const { type, code } = describeError(error);
    return ["failed", [type, code].filter(Boolean).join(" ")];
  }
  if (error instanceof OperationCancelled) return ["cancelled", error.message];
  return [error.cause === undefined ? "refused" : "failed", error.message];
}

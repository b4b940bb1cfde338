import { rewriteTables as rewrite, testSchemaOf } from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { describeDatabaseError, readDatabaseSettings } from "../services/database.ts";

/** Removes old versions of rows. Workers wait for each table while it is rewritten, and events wait in Redis. */
export function rewriteTables(context: ActingContext): Promise<void> {
  return recordAction(context, { command: "guests erase --rewrite", arguments: {} }, () => rewriteAll(context));
}

async function rewriteAll({ environment, notify }: Context): Promise<void> {
  const database = readDatabaseSettings(environment);
  notify("Rewriting the tables. Workers wait for that, and events wait in the queue.");
  const refused: string[] = [];
  for (const schema of [database.schema, testSchemaOf(database.schema)])
    refused.push(
      ...(await rewrite({ ...database, schema }).catch((error: unknown) => {
        throw describeDatabaseError(error, database);
      })),
    );
  if (refused.length > 0)
    throw new OperationFailure(
      `Only the owner of the tables may rewrite ${refused.join(", ")}. Run as the owner: ` +
        refused.map((table) => `vacuum (full, analyze) ${table};`).join(" "),
    );
}

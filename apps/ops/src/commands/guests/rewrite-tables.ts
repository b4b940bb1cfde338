import { rewriteTables } from "@booking-events/store";
import type { Context } from "../../context.ts";
import { describeDatabaseError, readDatabaseSettings } from "../../database.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printLine } from "../../terminal/print.ts";

/** Workers wait for each table while it is rewritten, and events wait in Redis. */
export async function rewrite({ environment, stdout, stderr }: Context): Promise<void> {
  const database = readDatabaseSettings(environment);
  printLine(stderr, "Rewriting the tables. Workers wait for that, and events wait in the queue.");
  const refused = await rewriteTables(database).catch((error: unknown) => {
    throw describeDatabaseError(error, database);
  });
  if (refused.length > 0)
    throw new CommandFailure(
      `Only the owner of the tables may rewrite ${refused.join(", ")}. Run as the owner: ` +
        refused.map((table) => `vacuum (full, analyze) ${table};`).join(" "),
    );
  printLine(stdout, "PostgreSQL has rewritten its tables.");
}

import { migrate, SchemaRefusedError, UnusableDatabaseError } from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { describeDatabaseError, readDatabaseSettings } from "../database.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { printLine } from "../terminal/print.ts";

export function addMigrateCommand(program: Command, { environment, stdout }: Context): void {
  program
    .command("migrate")
    .summary("bring the database's schema up to date")
    .description(
      "Bring the database's schema up to date. The worker does so when it starts. This command is for deployments " +
        "that migrate before that. Several processes may run it at the same time. There is no way back.",
    )
    .action(async () => {
      const database = readDatabaseSettings(environment);
      let applied: string[];
      try {
        applied = await migrate(database.databaseUrl, database);
      } catch (error) {
        if (error instanceof UnusableDatabaseError || error instanceof SchemaRefusedError)
          throw new CommandFailure(error.message, { cause: error });
        throw describeDatabaseError(error, database);
      }
      for (const name of applied) printLine(stdout, `Applied ${name}`);
      printLine(
        stdout,
        applied.length === 0 ? "Nothing to apply: the schema is up to date." : "The schema is up to date.",
      );
    });
}

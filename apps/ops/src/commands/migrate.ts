import { type Migrated, migrateDatabase } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printLine } from "../terminal/print.ts";

export function addMigrateCommand(program: Command, context: Context): void {
  program
    .command("migrate")
    .description(
      "Bring the database's schema up to date. A worker that owns the tables does so when it starts. This command is " +
        "for deployments that migrate before that. Several processes may run it at the same time. There is no way back.",
    )
    .option(
      "--grant",
      "also create the roles of worker, lookup, ops, webhooks, console and readers if they are missing, set their " +
        "passwords by WORKER_DATABASE_PASSWORD, LOOKUP_DATABASE_PASSWORD, OPS_DATABASE_PASSWORD, " +
        "WEBHOOKS_DATABASE_PASSWORD and CONSOLE_DATABASE_PASSWORD, and grant each what it needs",
    )
    .addOption(byOption())
    .action(async ({ grant = false, by }) =>
      printMigrated(context, await migrateDatabase(actAs(context, by), { grant })),
    );
}

function printMigrated({ stdout }: Context, { migrations, roles, withoutLogin }: Migrated): void {
  for (const name of migrations) printLine(stdout, `Applied ${name}`);
  printLine(
    stdout,
    migrations.length === 0 ? "Nothing to apply: the schema is up to date." : "The schema is up to date.",
  );
  if (roles.length > 0) printLine(stdout, `Granted what it needs to each of ${roles.join(", ")}.`);
  for (const role of withoutLogin) printLine(stdout, `${role} cannot connect yet: it has no password.`);
}

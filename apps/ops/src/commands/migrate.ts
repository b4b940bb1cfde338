import { parseEnvironment, variables } from "@booking-events/runtime";
import {
  migrate,
  migrateAndGrant,
  RolesRefusedError,
  SchemaRefusedError,
  UnusableDatabaseError,
} from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { type DatabaseSettings, describeDatabaseError, readDatabaseSettings } from "../database.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { printLine } from "../terminal/print.ts";

const ownErrors = [UnusableDatabaseError, SchemaRefusedError, RolesRefusedError];
const passwords = {
  WORKER_DATABASE_PASSWORD: variables.WORKER_DATABASE_PASSWORD,
  LOOKUP_DATABASE_PASSWORD: variables.LOOKUP_DATABASE_PASSWORD,
  OPS_DATABASE_PASSWORD: variables.OPS_DATABASE_PASSWORD,
  WEBHOOKS_DATABASE_PASSWORD: variables.WEBHOOKS_DATABASE_PASSWORD,
  EXPORTER_DATABASE_PASSWORD: variables.EXPORTER_DATABASE_PASSWORD,
};

export function addMigrateCommand(program: Command, context: Context): void {
  program
    .command("migrate")
    .summary("bring the database's schema up to date")
    .description(
      "Bring the database's schema up to date. A worker that owns the tables does so when it starts. This command is " +
        "for deployments that migrate before that. Several processes may run it at the same time. There is no way back.",
    )
    .option(
      "--grant",
      "also create the roles of worker, lookup, ops, webhooks and readers if they are missing, set their passwords by " +
        "WORKER_DATABASE_PASSWORD, LOOKUP_DATABASE_PASSWORD, OPS_DATABASE_PASSWORD and WEBHOOKS_DATABASE_PASSWORD, and " +
        "grant each what it needs",
    )
    .action(async ({ grant = false }) => {
      const database = readDatabaseSettings(context.environment);
      try {
        if (grant) await migrateWithRoles(context, database);
        else printMigrations(context, await migrate(database.databaseUrl, database));
      } catch (error) {
        if (!ownErrors.some((type) => error instanceof type)) throw describeDatabaseError(error, database);
        throw new CommandFailure((error as Error).message, { cause: error });
      }
    });
}

async function migrateWithRoles(context: Context, database: DatabaseSettings): Promise<void> {
  const given = parseEnvironment(passwords, context.environment);
  const { migrations, roles, withoutLogin } = await migrateAndGrant(database.databaseUrl, {
    ...database,
    passwords: {
      worker: given.WORKER_DATABASE_PASSWORD,
      lookup: given.LOOKUP_DATABASE_PASSWORD,
      ops: given.OPS_DATABASE_PASSWORD,
      webhooks: given.WEBHOOKS_DATABASE_PASSWORD,
      exporter: given.EXPORTER_DATABASE_PASSWORD,
    },
  });
  printMigrations(context, migrations);
  printLine(context.stdout, `Granted what it needs to each of ${roles.join(", ")}.`);
  for (const role of withoutLogin) printLine(context.stdout, `${role} cannot connect yet: it has no password.`);
}

function printMigrations({ stdout }: Context, applied: string[]): void {
  for (const name of applied) printLine(stdout, `Applied ${name}`);
  printLine(stdout, applied.length === 0 ? "Nothing to apply: the schema is up to date." : "The schema is up to date.");
}

import { parseEnvironment, variables } from "@booking-events/runtime";
import {
  migrate,
  migrateAndGrant,
  RolesRefusedError,
  SchemaRefusedError,
  UnusableDatabaseError,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { type DatabaseSettings, describeDatabaseError, readDatabaseSettings } from "../services/database.ts";

const ownErrors = [UnusableDatabaseError, SchemaRefusedError, RolesRefusedError];
const passwords = {
  WORKER_DATABASE_PASSWORD: variables.WORKER_DATABASE_PASSWORD,
  LOOKUP_DATABASE_PASSWORD: variables.LOOKUP_DATABASE_PASSWORD,
  OPS_DATABASE_PASSWORD: variables.OPS_DATABASE_PASSWORD,
  WEBHOOKS_DATABASE_PASSWORD: variables.WEBHOOKS_DATABASE_PASSWORD,
  CONSOLE_DATABASE_PASSWORD: variables.CONSOLE_DATABASE_PASSWORD,
  EXPORTER_DATABASE_PASSWORD: variables.EXPORTER_DATABASE_PASSWORD,
};

export interface Migrated {
  /** The names of those that were missing. */
  migrations: string[];
  /** Which were granted what they need. */
  roles: string[];
  /** Of these roles, those that have no password. */
  withoutLogin: string[];
}

/** Brings the database's schema up to date, and with `grant` the roles. */
export function migrateDatabase(context: ActingContext, { grant }: { grant: boolean }): Promise<Migrated> {
  return recordAction(context, { command: "migrate", arguments: { grant } }, async (record) => {
    const migrated = await bringUpToDate(context, grant);
    record.did = migrated;
    return migrated;
  });
}

async function bringUpToDate(context: Context, grant: boolean): Promise<Migrated> {
  const database = readDatabaseSettings(context.environment);
  try {
    if (grant) return await migrateWithRoles(context, database);
    return { migrations: await migrate(database.databaseUrl, database), roles: [], withoutLogin: [] };
  } catch (error) {
    if (!ownErrors.some((type) => error instanceof type)) throw describeDatabaseError(error, database);
    throw new OperationFailure((error as Error).message, { cause: error });
  }
}

function migrateWithRoles(context: Context, database: DatabaseSettings): Promise<Migrated> {
  const given = parseEnvironment(passwords, context.environment);
  return migrateAndGrant(database.databaseUrl, {
    ...database,
    passwords: {
      worker: given.WORKER_DATABASE_PASSWORD,
      lookup: given.LOOKUP_DATABASE_PASSWORD,
      ops: given.OPS_DATABASE_PASSWORD,
      webhooks: given.WEBHOOKS_DATABASE_PASSWORD,
      console: given.CONSOLE_DATABASE_PASSWORD,
      exporter: given.EXPORTER_DATABASE_PASSWORD,
    },
  });
}

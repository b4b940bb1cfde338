import { type Client, DatabaseError, escapeIdentifier, escapeLiteral } from "pg";
import { withOwnConnection } from "../connect/own-connection.ts";
import { safeMessage } from "../connect/safe-message.ts";
import { beginWithLimits, defaultSchema } from "../connect/transaction-limits.ts";
import {
  compare,
  type MigrationFile,
  type MigrationStatus,
  migrationsFolder,
  readApplied,
  readMigrations,
} from "./compare-migrations.ts";
import { type Granted, grant, type RolePasswords } from "./grant.ts";

/** While a migration waits for a table, all later queries of the table wait too. */
const lockTimeoutMs = 10_000;
const insufficientPrivilege = "42501";
const deadlockDetected = "40P01";
const maxTries = 5;

/**
 * Brings the database's tables up to date, and creates their schema if it is missing. One process does so at a time: the
 * others wait for the advisory lock, and then find nothing to do. All missing migrations run in one transaction. There
 * are no migrations back.
 *
 * A migration locks tables in another order than workers do. If it deadlocks with a worker, it is run again.
 *
 * @param options.schema where the tables are. Default: `public`
 * @param options.folder where the migrations are. Default: those of this release
 * @returns the names of the migrations that were run
 * @throws UnusableDatabaseError; SchemaRefusedError; what PostgreSQL throws, such as 55P03 if a table stays locked for
 *   10 s. Try again then
 */
export async function migrate(databaseUrl: string, options: MigrateOptions = {}): Promise<string[]> {
  return (await migrateAndThen(databaseUrl, options, async () => {})).migrations;
}

export interface MigrateOptions {
  schema?: string;
  folder?: string;
}

/**
 * As {@link migrate}, and in the same transaction as {@link grant}, so no process ever meets tables without its rights.
 *
 * @throws RolesRefusedError, and as `migrate`
 */
export function migrateAndGrant(
  databaseUrl: string,
  { passwords, ...options }: MigrateOptions & { passwords: RolePasswords },
): Promise<{ migrations: string[] } & Granted> {
  return migrateAndThen(databaseUrl, options, (client) => grant(client, passwords));
}

async function migrateAndThen<Result>(
  databaseUrl: string,
  { schema = defaultSchema, folder = migrationsFolder }: MigrateOptions,
  work: (client: Client) => Promise<Result>,
): Promise<{ migrations: string[] } & Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await tryToMigrate(databaseUrl, { schema, folder, work });
    } catch (error) {
      if ((error as { code?: unknown }).code !== deadlockDetected || tries === maxTries) throw error;
    }
  }
}

function tryToMigrate<Result>(
  databaseUrl: string,
  { schema, folder, work }: { schema: string; folder: string; work: (client: Client) => Promise<Result> },
): Promise<{ migrations: string[] } & Result> {
  return withOwnConnection(databaseUrl, "booking-events-migrate", async (client) => {
    await client.query(beginAlone(schema));
    await refuseOtherEncodings(client);
    await provideSchema(client, schema);
    const migrations = await runMissing(client, schema, folder).catch((error) => {
      throw error instanceof DatabaseError && error.code === insufficientPrivilege
        ? refusedToMigrate(schema, error)
        : error;
    });
    const result = await work(client);
    await client.query("commit");
    return { migrations, ...result };
  });
}

/**
 * The lock is the transaction's, since a pooler that gives each transaction another connection to the server would keep
 * a session's lock forever. Whoever waited for it sees what its holder committed, since the transaction is read
 * committed.
 */
function beginAlone(schema: string): string {
  const key = `hashtextextended(${escapeLiteral(`migrations of ${schema}`)}, 0)`;
  return `${beginWithLimits({ schema, statementTimeoutMs: 0, lockTimeoutMs })}; select pg_advisory_xact_lock(${key})`;
}

async function refuseOtherEncodings(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string; encoding: string }>(
    `select current_database() as name, current_setting('server_encoding') as encoding
     where current_setting('server_encoding') <> 'UTF8'`,
  );
  if (rows[0] === undefined) return;
  throw new UnusableDatabaseError(
    `The database ${escapeIdentifier(rows[0].name)} has the encoding ${rows[0].encoding}, which can't hold every ` +
      "event. Create one with: create database … encoding 'UTF8' template template0",
  );
}

async function provideSchema(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ isUsable: boolean; user: string }>(
    `select has_schema_privilege(oid, 'usage') as "isUsable", current_user as user
     from pg_namespace
     where nspname = $1`,
    [schema],
  );
  const name = escapeIdentifier(schema);
  if (rows[0] === undefined) await createSchema(client, name);
  else if (!rows[0].isUsable)
    throw new SchemaRefusedError(
      `${rows[0].user} may not use the schema ${name}. Run: grant usage on schema ${name} to ${rows[0].user}`,
    );
}

async function createSchema(client: Client, name: string): Promise<void> {
  try {
    await client.query(`create schema ${name}`);
  } catch (error) {
    if ((error as { code?: unknown }).code !== insufficientPrivilege) throw error;
    throw new SchemaRefusedError(
      `The schema ${name} does not exist, and the user of DATABASE_URL may not create it. ` +
        `Create it as an administrator, and make that user its owner.`,
      { cause: error },
    );
  }
}

function refuseOtherSchemas({ different, unknown }: MigrationStatus, schema: string): void {
  const name = escapeIdentifier(schema);
  if (different.length > 0)
    throw new UnusableDatabaseError(
      `The tables in the schema ${name} were made by other files than those of this version (${different[0]}), and ` +
        `stay as they are: to start over without them, run drop schema ${name} cascade or, if npm start has made ` +
        "them, delete the folder .data.",
    );
  if (unknown.length > 0)
    throw new UnusableDatabaseError(
      `The database has been migrated by a newer version of this program (${unknown.join(", ")}). Run that version, or restore a backup.`,
    );
}

/** @returns the names of the migrations that were missing */
async function runMissing(client: Client, schema: string, folder: string): Promise<string[]> {
  const files = await readMigrations(folder);
  const status = compare(files, await readApplied(client));
  refuseOtherSchemas(status, schema);
  for (const file of files) if (status.missing.includes(file.name)) await run(client, file);
  return status.missing;
}

/** A process with no more rights than it needs waits for the owner. */
function refusedToMigrate(schema: string, cause: DatabaseError): SchemaRefusedError {
  return new SchemaRefusedError(
    `The tables in the schema ${escapeIdentifier(schema)} are not of this release, or are not granted to the user of ` +
      "DATABASE_URL, who may not migrate. Run as their owner: ops migrate --grant",
    { cause },
  );
}

async function run(client: Client, { name, sql, digest, allowsOlder }: MigrationFile): Promise<void> {
  await client.query(sql);
  await client.query("insert into schema_migrations (name, digest, allows_older) values ($1, $2, $3)", [
    name,
    digest,
    allowsOlder,
  ]);
}

/** This release can't use the database, however long it waits. */
export class UnusableDatabaseError extends Error {
  override name = "UnusableDatabaseError";
  readonly [safeMessage] = true;
}

/** The tables' schema does not exist, or must not be used or migrated. */
export class SchemaRefusedError extends Error {
  override name = "SchemaRefusedError";
  readonly code = insufficientPrivilege;
}

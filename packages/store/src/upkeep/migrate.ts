import { type Client, DatabaseError, escapeIdentifier, escapeLiteral } from "pg";
import { withOwnConnection } from "../connect/own-connection.ts";
import { safeMessage } from "../connect/safe-message.ts";
import { beginWithLimits, defaultSchema, testSchemaOf } from "../connect/transaction-limits.ts";
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
 * Brings the database's tables up to date, and those of test partners' bookings, which are the same in a schema of their
 * own. It creates the schemas if they are missing. One process does so at a time: the
 * others wait for the advisory lock, and then find nothing to do. All missing migrations run in one transaction. There
 * are no migrations back.
 *
 * A migration locks tables in another order than workers do. If it deadlocks with a worker, it is run again.
 *
 * @param options.schema where the tables are. Default: `public`
 * @param options.folder where the migrations are. Default: those of this release
 * @returns the names of the migrations that were run, apart from those in the other schema
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
 * As {@link migrate}, and in the same transaction as {@link grant} for both schemas, so no process ever meets tables
 * without its rights.
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
    const testSchema = testSchemaOf(schema);
    const migrations = await bringUpToDate(client, schema, folder);
    const result = await work(client);
    await bringUpToDate(client, testSchema, folder);
    await work(client);
    await shareIdentity(client, schema, testSchema);
    await client.query("commit");
    return { migrations, ...result };
  });
}

/** Leaves the transaction in the schema. */
async function bringUpToDate(client: Client, schema: string, folder: string): Promise<string[]> {
  await provideSchema(client, schema);
  await client.query(`set local search_path to ${escapeIdentifier(schema)}`);
  return asMigration(schema, () => runMissing(client, schema, folder));
}

/**
 * To the queue, the two schemas are one database, and an erased booking's key is computed in the same way in both. So the
 * worker needs one id and one key.
 */
async function shareIdentity(client: Client, schema: string, testSchema: string): Promise<void> {
  const real = escapeIdentifier(schema);
  const test = escapeIdentifier(testSchema);
  await asMigration(testSchema, async () => {
    const { rows } = await client.query<{ hasId: boolean; hasKey: boolean }>(
      `select real_id.id = test_id.id as "hasId", real_key.key is not distinct from test_key.key
         and real_key.fingerprint is not distinct from test_key.fingerprint as "hasKey"
       from ${real}.database_id as real_id, ${test}.database_id as test_id,
         ${real}.digest_key as real_key, ${test}.digest_key as test_key`,
    );
    const { hasId, hasKey } = rows[0] ?? {};
    if (hasId === false) await client.query(`update ${test}.database_id set id = (select id from ${real}.database_id)`);
    if (hasKey === false)
      await client.query(
        `update ${test}.digest_key set (key, fingerprint) = (select key, fingerprint from ${real}.digest_key)`,
      );
  });
}

async function asMigration<Result>(schema: string, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof DatabaseError && error.code === insufficientPrivilege) throw refusedToMigrate(schema, error);
    throw error;
  }
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
      `The tables in the schema ${name} were made by files that this release has not, or has changed: ` +
        `${different.join(", ")}. Run the release that made them. Only if they are for development, start over ` +
        `without their data: run drop schema ${name} cascade or, if npm start has made them, delete the folder .data.`,
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

import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { PG_MIGRATE_LOCK_ID, runner } from "node-pg-migrate";
import { type Client, escapeIdentifier, escapeLiteral } from "pg";
import { beginWithLimits, defaultSchema, type Queryable } from "./database.ts";
import { safeMessage } from "./safe-message.ts";
import { ServerClient } from "./server-client.ts";

const migrationsFolder = fileURLToPath(new URL("../migrations", import.meta.url));
const migrationsTable = "schema_migrations";
const connectTimeoutMs = 5_000;
/** While a migration waits for a table, all later queries of the table wait too. */
const lockTimeoutMs = 10_000;
const insufficientPrivilege = "42501";
const deadlockDetected = "40P01";
const maxTries = 5;

/** The database's schema is newer than this release. */
export class NewerSchemaError extends Error {
  override name = "NewerSchemaError";
  readonly [safeMessage] = true;
}

/** The database can't hold every text that an event may have. Its encoding is set when it is created. */
export class DatabaseEncodingError extends Error {
  override name = "DatabaseEncodingError";
  readonly [safeMessage] = true;
}

/** The tables' schema does not exist, or must not be used. */
export class SchemaRefusedError extends Error {
  override name = "SchemaRefusedError";
  readonly code = insufficientPrivilege;
}

/**
 * Brings the database's tables up to date, and creates their schema if it is missing. One process does so at a time: the
 * others wait for the advisory lock, and then find nothing to do. All missing migrations run in one transaction. There
 * are no migrations back.
 *
 * A migration locks tables in another order than workers do. If it deadlocks with a worker, it is run again.
 *
 * @param options.schema where the tables are. Default: `public`
 * @returns the names of the migrations that were run
 * @throws NewerSchemaError if a newer release has migrated the database already; DatabaseEncodingError;
 *   SchemaRefusedError; what PostgreSQL throws, such as 55P03 if a table stays locked for 10 s. Try again then
 */
export async function migrate(
  databaseUrl: string,
  { schema = defaultSchema }: { schema?: string } = {},
): Promise<string[]> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await tryToMigrate(databaseUrl, schema);
    } catch (error) {
      if ((error as { code?: unknown }).code !== deadlockDetected || tries === maxTries) throw error;
    }
  }
}

async function tryToMigrate(databaseUrl: string, schema: string): Promise<string[]> {
  const client = new ServerClient({
    connectionString: databaseUrl,
    application_name: "booking-events-migrate",
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  });
  // If the connection breaks, the current query fails. Without a listener the process would end too.
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query(beginAlone(schema));
    await refuseOtherEncodings(client);
    await provideSchema(client, schema);
    await refuseNewerSchema(client);
    const applied = await runner({
      dbClient: client,
      dir: migrationsFolder,
      migrationsTable,
      migrationsSchema: schema,
      direction: "up",
      // Its BEGIN only warns that there is a transaction. Its COMMIT ends that.
      singleTransaction: true,
      noLock: true,
      logger: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
    });
    await client.query("commit");
    return applied.map(({ name }) => name);
  } finally {
    await client.end();
  }
}

/**
 * The lock that node-pg-migrate would take, but for the transaction rather than the session. A pooler that gives each
 * transaction another connection to the server would keep a session's lock forever. Whoever waited for the lock sees
 * what its holder committed, since the transaction is read committed.
 */
function beginAlone(schema: string): string {
  const key =
    schema === defaultSchema
      ? String(PG_MIGRATE_LOCK_ID)
      : `hashtextextended(${escapeLiteral(schema)}, ${PG_MIGRATE_LOCK_ID})`;
  return `${beginWithLimits({ schema, statementTimeoutMs: 0, lockTimeoutMs })}; select pg_advisory_xact_lock(${key})`;
}

async function refuseOtherEncodings(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string; encoding: string }>(
    `select current_database() as name, current_setting('server_encoding') as encoding
     where current_setting('server_encoding') <> 'UTF8'`,
  );
  if (rows[0] === undefined) return;
  throw new DatabaseEncodingError(
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

async function refuseNewerSchema(client: Client): Promise<void> {
  const { unknown } = await compareMigrations(client);
  if (unknown.length > 0) {
    throw new NewerSchemaError(
      `The database has been migrated by a newer version of this program (${unknown.join(", ")}). Run that version.`,
    );
  }
}

export interface MigrationStatus {
  /** The name of the last migration of the database; null: there is none. */
  last: string | null;
  /** Migrations of this release that the database lacks. */
  missing: string[];
  /** Migrations of a newer release. */
  unknown: string[];
}

/** Compares the database's migrations with those of this release. */
export async function compareMigrations(client: Queryable): Promise<MigrationStatus> {
  const known = (await readdir(migrationsFolder)).map((file) => file.replace(/\.sql$/, "")).sort();
  const { rows: tables } = await client.query<{ found: boolean }>("select to_regclass($1) is not null as found", [
    migrationsTable,
  ]);
  if (tables[0]?.found !== true) return { last: null, missing: known, unknown: [] };
  const { rows } = await client.query<{ name: string }>(`select name from ${migrationsTable} order by id`);
  const applied = rows.map(({ name }) => name);
  return {
    last: applied.at(-1) ?? null,
    missing: known.filter((name) => !applied.includes(name)),
    unknown: applied.filter((name) => !known.includes(name)),
  };
}

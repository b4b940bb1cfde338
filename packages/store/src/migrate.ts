import { readdir } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { PG_MIGRATE_LOCK_ID, runner } from "node-pg-migrate";
import { Client } from "pg";
import { beginWithLimits } from "./database.ts";

const migrationsFolder = fileURLToPath(new URL("../migrations", import.meta.url));
const migrationsTable = "schema_migrations";
const connectTimeoutMs = 5_000;
/** While a migration waits for a table, all later queries of the table wait too. */
const lockTimeoutMs = 10_000;

/** The database's schema is newer than this release. */
export class NewerSchemaError extends Error {
  override name = "NewerSchemaError";
}

/**
 * Brings the database's schema up to date. One process does so at a time: the others wait for the advisory lock, and
 * then find nothing to do. All missing migrations run in one transaction. There are no migrations back.
 *
 * @returns the names of the migrations that were run
 * @throws NewerSchemaError if a newer release has migrated the database already; what PostgreSQL throws, such as 55P03
 *   if a table stays locked for 10 s. Try again then
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const client = new Client({
    connectionString: databaseUrl,
    application_name: "booking-events-migrate",
    connectionTimeoutMillis: connectTimeoutMs,
    keepAlive: true,
  });
  // If the connection breaks, the current query fails. Without a listener the process would end too.
  client.on("error", () => {});
  await client.connect();
  try {
    await client.query(beginAlone);
    await refuseNewerSchema(client);
    const applied = await runner({
      dbClient: client,
      dir: migrationsFolder,
      migrationsTable,
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
const beginAlone = `${beginWithLimits({ statementTimeoutMs: 0, lockTimeoutMs })};
  select pg_advisory_xact_lock(${PG_MIGRATE_LOCK_ID})`;

async function refuseNewerSchema(client: Client): Promise<void> {
  const { rows: tables } = await client.query<{ found: boolean }>("select to_regclass($1) is not null as found", [
    migrationsTable,
  ]);
  if (tables[0]?.found !== true) return;
  const known = new Set((await readdir(migrationsFolder)).map((file) => file.replace(/\.sql$/, "")));
  const { rows } = await client.query<{ name: string }>(`select name from ${migrationsTable} order by id`);
  const unknown = rows.map(({ name }) => name).filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new NewerSchemaError(
      `The database has been migrated by a newer version of this program (${unknown.join(", ")}). Run that version.`,
    );
  }
}

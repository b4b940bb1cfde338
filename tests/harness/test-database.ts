import { randomBytes } from "node:crypto";
import { createPool, defaultSchema, testSchemaOf } from "@booking-events/store";
import type pg from "pg";
import { afterAll, beforeAll } from "vitest";
import { execute } from "./execute.ts";
import { provided } from "./provided.ts";
import { waitFor } from "./wait-for.ts";

/**
 * Creates a database and pools of connections to it, the second one for the bookings of test partners, for the tests of the file, or of the `describe` that calls this.
 * Both end after the last test.
 */
export function useTestDatabase({
  maxConnections = 4,
  onError = () => {},
}: {
  maxConnections?: number;
  onError?: (error: Error) => void;
} = {}): { url: string; pool: pg.Pool; testPool: pg.Pool } {
  const { url, create, drop } = nameDatabase();
  const options = { databaseUrl: url, applicationName: "test", maxConnections, onError };
  // They connect at the first query.
  const pool = createPool(options);
  const testPool = createPool({ ...options, schema: testSchemaOf(defaultSchema) });
  beforeAll(create);
  afterAll(async () => {
    await Promise.all([pool.end(), testPool.end()]);
    await drop();
  });
  return { url, pool, testPool };
}

/** A new database with all migrations. It is cloned from a template, in a few milliseconds. */
export async function createTestDatabase(): Promise<{ url: string; drop: () => Promise<void> }> {
  const { url, create, drop } = nameDatabase();
  await create();
  return { url, drop };
}

function nameDatabase() {
  const name = `test_${randomBytes(8).toString("hex")}`;
  const adminUrl = provided("postgresUrl");
  return {
    url: Object.assign(new URL(adminUrl), { pathname: `/${name}` }).href,
    create: () => execute(adminUrl, `create database ${name} template ${provided("templateDatabase")}`),
    // A failed test may have left connections open.
    drop: async () => void (await execute(adminUrl, `drop database if exists ${name} with (force)`)),
  };
}

/** Waits until this many statements in the connection's database wait for a lock. */
export async function untilBlocked(connection: Pick<pg.ClientBase, "query">, count: number): Promise<void> {
  await waitFor(async () => {
    const { rowCount } = await connection.query(
      "select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rowCount === count;
  });
}

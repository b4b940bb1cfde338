import { createTestDatabase } from "@booking-events/scripts/testing";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPool, inTransaction } from "./database.ts";

let database: Awaited<ReturnType<typeof createTestDatabase>>;
let pool: Pool;
const brokenConnections: Error[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  pool = createPool({
    ...{ databaseUrl: database.url, applicationName: "test", maxConnections: 2 },
    onError: (error) => brokenConnections.push(error),
  });
});

afterAll(async () => {
  await pool.end();
  await database.drop();
});

// An error event that nobody listens to would end the process; the test's runner reports it as an unhandled error.
test("a connection that breaks between two queries of a transaction fails the transaction, not the process", async () => {
  const transaction = inTransaction(pool, async (client) => {
    const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
    const isBroken = new Promise((resolve) => client.once("end", resolve));
    await pool.query("select pg_terminate_backend($1)", [rows[0]?.pid]);
    await isBroken;
    await client.query("select 1");
  });
  await expect(transaction).rejects.toThrow(/connection error|Connection terminated|not queryable/);
  expect(brokenConnections.length).toBeGreaterThan(0);
  expect((await pool.query<{ one: number }>("select 1 as one")).rows).toEqual([{ one: 1 }]);
});

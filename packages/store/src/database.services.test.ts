import type { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createTestDatabase, waitFor } from "@booking-events/scripts/testing";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool, inTransaction, type Queryable, settleAll } from "./database.ts";

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

describe("statements of a transaction that are sent together", () => {
  beforeAll(async () => {
    await pool.query("create table notes (note text not null)");
  });

  test("wait for no answer in between, and are carried out in their order", async () => {
    const results = await inTransaction(pool, async (client) => {
      expect(client).toMatchObject({ pipeline: true });
      return settleAll(
        ["one", "two", "three"].map((note) =>
          client.query<{ before: string[] }>(
            "with added as (insert into notes values ($1)) select array(select note from notes) as before",
            [note],
          ),
        ),
      );
    });
    expect(results.map(({ rows }) => rows[0]?.before)).toEqual([[], ["one"], ["one", "two"]]);
  });

  test("fail together: the error is the first one's, all are over, nothing is written", async () => {
    const ended: string[] = [];
    let pid: number | undefined;
    const transaction = inTransaction(pool, async (client) => {
      const insert = (note: string | null) =>
        client.query("insert into notes values ($1)", [note]).finally(() => ended.push(String(note)));
      pid = await readPid(client);
      return settleAll([insert("four"), insert(null), insert("five")]);
    });
    await expect(transaction).rejects.toMatchObject({ code: "23502" });
    expect(ended).toEqual(["four", "null", "five"]);
    expect((await pool.query("select from notes where note in ('four', 'five')")).rowCount).toBe(0);
    expect(await inTransaction(pool, readPid)).toBe(pid);
  });

  test("reach no connection after the rollback, though one of them is followed by another", async () => {
    const transaction = inTransaction(pool, async (client) => {
      const insert = (note: string | null) => client.query("insert into notes values ($1)", [note]);
      const insertTwo = async () => {
        await insert("six");
        await sleep(50);
        await insert("seven");
      };
      return settleAll([insertTwo(), insert(null)]);
    });
    await expect(transaction).rejects.toThrow();
    await sleep(100);
    expect((await pool.query("select from notes where note in ('six', 'seven')")).rowCount).toBe(0);
  });

  async function readPid(client: Queryable): Promise<number | undefined> {
    return (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
  }
});

test("a client that takes no bytes, like a frozen process, loses its connection and its locks", {
  timeout: 90_000,
}, async () => {
  const client = await pool.connect();
  client.on("error", () => {});
  await client.query("begin");
  await client.query("select pg_advisory_xact_lock(42)");
  // More than the sockets' buffers on both sides take.
  const ending = expect(client.query("select repeat('x', 1000) from generate_series(1, 100000)")).rejects.toThrow();
  const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
  stream.pause();
  await waitFor(
    async () => {
      const { rows } = await pool.query("select pg_try_advisory_xact_lock(42) as is_free");
      expect(rows).toEqual([{ is_free: true }]);
    },
    { timeoutMs: 80_000 },
  );
  stream.resume();
  await ending;
  client.release(true);
});

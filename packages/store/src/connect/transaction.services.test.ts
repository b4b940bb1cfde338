import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, describe, expect, test } from "vitest";
import { createPool } from "./pool.ts";
import { inPreparedTransaction, queryPrepared } from "./prepared-transaction.ts";
import type { Queryable } from "./queryable.ts";
import { RollBack } from "./roll-back.ts";
import { settleAll } from "./settle-all.ts";
import { inTransaction, NotBegun } from "./transaction.ts";

const brokenConnections: Error[] = [];
const { pool, url } = useTestDatabase({ maxConnections: 2, onError: (error) => brokenConnections.push(error) });
const { pool: single } = useTestDatabase({ maxConnections: 1 });

// An error event without a listener would end the process. Vitest reports it as an unhandled error.
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

test("a new connection asks for nothing that a pooler may refuse", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const databaseUrl = `postgres://role@127.0.0.1:${(server.address() as AddressInfo).port}/name`;
  const pooled = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
  const refused = expect(pooled.query("select 1")).rejects.toThrow();
  const [socket] = (await once(server, "connection")) as [Socket];
  const [startup] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  // Two numbers, and then each name and value with a zero byte after it.
  const texts = startup.subarray(8).toString().split("\0").slice(0, -2);
  expect(texts.filter((_, index) => index % 2 === 0).toSorted()).toEqual([
    ...["application_name", "client_encoding", "database", "user"],
  ]);
  await refused;
  await pooled.end();
  server.close();
});

test("a single statement has the limits of a transaction, and its failure is its own", async () => {
  await expect(pool.query("select 1 / 0")).rejects.toThrow("division by zero");
  const { rows } = await pool.query("select current_setting('statement_timeout') as timeout");
  expect(rows).toEqual([{ timeout: "30s" }]);
});

test("times are read as such, whatever style the database has", async () => {
  const { pathname } = new URL(url);
  await pool.query(`alter database ${pathname.slice(1)} set datestyle to 'German'`);
  const other = createPool({ databaseUrl: url, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    const { rows } = await other.query("select timestamptz '2026-01-02 03:04:05Z' as at");
    expect(rows).toEqual([{ at: new Date("2026-01-02T03:04:05Z") }]);
  } finally {
    await other.end();
    await pool.query(`alter database ${pathname.slice(1)} reset datestyle`);
  }
});

test("the names in a jsonb do not depend on what was parsed before", async () => {
  JSON.parse('{"a":0,"x\\\\":0}');
  const { rows } = await pool.query(`select '{"a":0,"x\\n":0}'::jsonb as value`);
  expect(rows).toEqual([{ value: { a: 0, "x\n": 0 } }]);
});

describe("a prepared transaction", () => {
  const ask = (client: Queryable) => client.query("select $1::int + 1 as sum", [1]);
  test("prepares a statement once for a connection, and plans it without its values", async () => {
    await inPreparedTransaction(single, ask);
    const { rows } = await inPreparedTransaction(single, async (client) => {
      const [, answer] = await settleAll([ask(client), ask(client)]);
      return answer;
    });
    expect(rows).toEqual([{ sum: 2 }]);
    const { rows: plans } = await single.query(
      "select generic_plans, custom_plans from pg_prepared_statements order by statement like '%set_config%'",
    );
    // The second one is what each transaction ends with.
    expect(plans).toEqual([
      { generic_plans: 3, custom_plans: 0 },
      { generic_plans: 2, custom_plans: 0 },
    ]);
  });

  test("never lets PostgreSQL compile a statement, which would take longer than to run it", async () => {
    const { rows } = await inPreparedTransaction(single, (client) =>
      client.query("select current_setting('jit') as jit"),
    );
    expect(rows).toEqual([{ jit: "off" }]);
  });

  test("prepares a statement again if a transaction had failed before it could be prepared", async () => {
    const other = (client: Queryable) => client.query("select $1::int + 2 as sum", [1]);
    const failed = inPreparedTransaction(single, (client) =>
      settleAll([client.query("select 1 / $1::int", [0]), other(client)]),
    );
    await expect(failed).rejects.toThrow("division by zero");
    expect((await inPreparedTransaction(single, other)).rows).toEqual([{ sum: 3 }]);
  });

  test("gets another connection if a prepared statement has other columns now, or is gone", async () => {
    await single.query("create table changing (value varchar(10))");
    const read = () => inPreparedTransaction(single, (client) => client.query("select value from changing", []));
    await read();
    await single.query("alter table changing alter column value type varchar(20)");
    await expect(read()).rejects.toThrow("cached plan must not change result type");
    expect((await read()).rows).toEqual([]);
    await single.query("deallocate all");
    await expect(read()).rejects.toThrow("does not exist");
    expect((await read()).rows).toEqual([]);
  });

  test("prepares a single statement, too, whose failure is its own", async () => {
    const sum = () => queryPrepared(single, "select $1::int + 3 as sum", [1]);
    await sum();
    await expect(queryPrepared(single, "select 1 / $1::int", [0])).rejects.toThrow("division by zero");
    expect((await sum()).rows).toEqual([{ sum: 4 }]);
    const { rows: plans } = await single.query(
      "select generic_plans, custom_plans from pg_prepared_statements where statement like '%+ 3 as sum'",
    );
    expect(plans).toEqual([{ generic_plans: 2, custom_plans: 0 }]);
  });

  test("prepares nothing on a connection to a pooler", async () => {
    (await single.connect()).release(true);
    single.once("connect", (client) => Object.assign(client, { processID: -1 }));
    expect((await inPreparedTransaction(single, ask)).rows).toEqual([{ sum: 2 }]);
    expect((await queryPrepared(single, "select $1::int + 1 as sum", [1])).rows).toEqual([{ sum: 2 }]);
    expect((await single.query("select from pg_prepared_statements")).rows).toEqual([]);
  });
});

describe("after a failed transaction, its connection", () => {
  const fail = async (work: (client: Queryable) => Promise<unknown>) => {
    let pid: number | undefined;
    const transaction = inTransaction(pool, async (client) => {
      pid = await readPid(client);
      await work(client);
    });
    await expect(transaction).rejects.toThrow();
    return pid;
  };

  test("is never used again after a time-out on our side, since the late answer may still arrive", async () => {
    const pid = await fail((client) => {
      // PostgreSQL answers too late, as it does after a freeze.
      const late = { text: "select pg_sleep(0.2)", query_timeout: 20 };
      return client.query(late);
    });
    expect(await inTransaction(pool, readPid)).not.toBe(pid);
    expect(pool.totalCount).toBe(1);
  });

  test("is used again if PostgreSQL itself reported the error", async () => {
    const pid = await fail((client) => client.query("select 1 / 0"));
    expect(await inTransaction(pool, readPid)).toBe(pid);
  });

  test("is used again if nothing was wrong with it", async () => {
    const pid = await fail(() => Promise.reject(new RollBack()));
    expect(await inTransaction(pool, readPid)).toBe(pid);
  });
});

test("a transaction that can't begin has an error of its own, and its connection is not used again", async () => {
  const released: unknown[] = [];
  const refused = Object.assign(new Error("no server"), { code: "22P02" });
  const client = { query: () => Promise.reject(refused), release: (isBroken: unknown) => released.push(isBroken) };
  const pooler = createPool({ databaseUrl: url, applicationName: "test", maxConnections: 1, onError: () => {} });
  pooler.connect = (async () => client) as unknown as typeof pooler.connect;
  const failure = inTransaction(pooler, async () => "never");
  await expect(failure).rejects.toThrow(NotBegun);
  await expect(failure).rejects.toMatchObject({ cause: refused });
  expect(released).toEqual([true]);
});

describe("statements of a transaction that are sent together", () => {
  beforeAll(async () => {
    await pool.query("create table notes (note text not null)");
  });

  test("don't wait for each other's answers, and run in order", async () => {
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

  test("fail together: with the first error, after all have ended, and nothing is written", async () => {
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

  test("reach no other transaction, even if our code fails while some are still to be sent", async () => {
    let sendingLater: Promise<unknown> | undefined;
    const transaction = inTransaction(pool, async (client) => {
      const insert = (note: string) => client.query("insert into notes values ($1)", [note]);
      sendingLater = insert("eight").then(async () => {
        await transaction.catch(() => {});
        await insert("nine");
      });
      throw new TypeError("A bug.");
    });
    await expect(transaction).rejects.toThrow(TypeError);
    await expect(sendingLater).rejects.toThrow();
    expect((await pool.query("select from notes where note in ('eight', 'nine')")).rowCount).toBe(0);
  });

  test("reach no connection after the rollback, even if one of them is followed by another", async () => {
    let insertingTwo: Promise<unknown> | undefined;
    const transaction = inTransaction(pool, async (client) => {
      const insert = (note: string | null) => client.query("insert into notes values ($1)", [note]);
      const insertTwo = async () => {
        await insert("six");
        await sleep(50);
        await insert("seven");
      };
      insertingTwo = insertTwo();
      return settleAll([insertingTwo, insert(null)]);
    });
    await expect(transaction).rejects.toThrow();
    await expect(insertingTwo).rejects.toThrow();
    expect((await pool.query("select from notes where note in ('six', 'seven')")).rowCount).toBe(0);
  });
});

test("a client that takes no bytes, like a frozen process, loses its connection and its locks", {
  timeout: 90_000,
}, async () => {
  const { promise: isFrozen, resolve: freeze } = Promise.withResolvers<Socket>();
  const frozen = inTransaction(pool, async (client) => {
    await client.query("select pg_advisory_xact_lock(42)");
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection;
    stream.pause();
    freeze(stream);
    // More than the buffers of both sockets hold.
    await client.query("select repeat('x', 1000) from generate_series(1, 100000)");
  });
  const ending = expect(frozen).rejects.toThrow(/terminated|ended|ECONNRESET/);
  const stream = await isFrozen;
  await waitFor(
    async () => {
      const { rows } = await pool.query("select pg_try_advisory_xact_lock(42) as is_free");
      expect(rows).toEqual([{ is_free: true }]);
    },
    { timeoutMs: 80_000 },
  );
  stream.resume();
  await ending;
});

async function readPid(client: Queryable): Promise<number | undefined> {
  return (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
}

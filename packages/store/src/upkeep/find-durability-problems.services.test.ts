import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import type { PostgresServer } from "@booking-events/scripts/services";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createPool } from "../connect/pool.ts";
import { inTransaction } from "../connect/transaction.ts";
import { findDurabilityProblems } from "./find-durability-problems.ts";
import { migrate } from "./migrate.ts";

/** A server with PostgreSQL's default settings. The server that tests share has others. */
let folder: string;
let server: PostgresServer;
let admin: Pool;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "booking-events-durability-"));
  server = await startOwnPostgres({ dir: folder });
  await migrate(server.url);
  admin = connect();
});

afterAll(async () => {
  await admin?.end();
  await server?.stop();
  rmSync(server.home, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
});

function connect(): Pool {
  return createPool({ databaseUrl: server.url, applicationName: "test", maxConnections: 1, onError: () => {} });
}

/** With a new connection, since settings of the database take effect when a connection begins. */
async function findProblems(): Promise<string[]> {
  const pool = connect();
  try {
    return await findDurabilityProblems(pool);
  } finally {
    await pool.end();
  }
}

describe("a PostgreSQL that may lose committed data", () => {
  test("is not found with the default settings", async () => {
    expect(await findProblems()).toEqual([]);
  });

  test.each([
    ["fsync", "off", "on"],
    ["full_page_writes", "off", "on"],
  ])("is found by its %s, without a restart", async (name, bad, good) => {
    await execute(server.url, `alter system set ${name} = ${bad}`);
    await admin.query("select pg_reload_conf()");
    await waitFor(async () =>
      expect(await findProblems()).toEqual([
        `PostgreSQL may lose committed data: ${name} is ${bad}. Set: ${name} = ${good}.`,
      ]),
    );
    await execute(server.url, `alter system reset ${name}`);
    await admin.query("select pg_reload_conf()");
    await waitFor(async () => expect(await findProblems()).toEqual([]));
  });

  test("is found by a setting of the database", async () => {
    await admin.query(`alter database ${await name()} set zero_damaged_pages = on`);
    expect(await findProblems()).toEqual([expect.stringContaining("Set: zero_damaged_pages = off.")]);
    await admin.query(`alter database ${await name()} reset zero_damaged_pages`);
  });

  test.each([
    ["standard_conforming_strings", "off"],
    ["array_nulls", "off"],
  ])("or misread what it is sent, is found by its %s", async (setting, bad) => {
    await admin.query(`alter database ${await name()} set ${setting} = ${bad}`);
    expect(await findProblems()).toEqual([
      `PostgreSQL misreads what it is sent: ${setting} is ${bad}. Set: ${setting} = on.`,
    ]);
    await admin.query(`alter database ${await name()} reset ${setting}`);
  });

  test("is found by each table that a crash would empty", async () => {
    const { rows } = await admin.query<{ table: string; referring: string[] }>(
      `select relname as table, array(
         select conrelid::regclass::text from pg_constraint where contype = 'f' and confrelid = pg_class.oid
       ) as referring
       from pg_class
       where relkind = 'r' and relnamespace = (select relnamespace from pg_class where oid = 'bookings'::regclass)`,
    );
    const tables = rows.map(({ table }) => table);
    expect(tables).toEqual(expect.arrayContaining(["bookings", "booking_events_default", "erasures"]));
    for (const { table, referring } of rows) {
      // A logged table can't refer to one that is not.
      const emptied = [...referring, table];
      for (const name of emptied) await admin.query(`alter table ${name} set unlogged`);
      const problems = (await findProblems()).join();
      for (const name of emptied) expect(problems).toContain(`alter table ${name} set logged`);
      for (const name of emptied.toReversed()) await admin.query(`alter table ${name} set logged`);
    }
    expect(await findProblems()).toEqual([]);
  });
});

describe("our transactions", () => {
  beforeAll(async () => {
    // A trigger that is deferred runs when the transaction commits.
    await admin.query("create table writes (); create table commits (synchronous_commit text)");
    await admin.query(`create function note_commit() returns trigger language plpgsql as
      $$ begin insert into commits values (current_setting('synchronous_commit')); return null; end $$`);
    await admin.query(`create constraint trigger at_commit after insert on writes deferrable initially deferred
      for each row execute function note_commit()`);
  });

  test.each([
    ["off", "on"],
    ["remote_apply", "remote_apply"],
  ])("with synchronous_commit = %s set on the database, commit with %s", async (setting, used) => {
    await admin.query("truncate commits");
    await admin.query(`alter database ${await name()} set synchronous_commit = ${setting}`);
    const pool = connect();
    try {
      const { rows } = await pool.query("show synchronous_commit");
      expect(rows).toEqual([{ synchronous_commit: setting }]);
      await inTransaction(pool, (client) => client.query("insert into writes default values"));
    } finally {
      await pool.end();
      await admin.query(`alter database ${await name()} reset synchronous_commit`);
    }
    expect((await admin.query("select * from commits")).rows).toEqual([{ synchronous_commit: used }]);
  });
});

async function name(): Promise<string> {
  const { rows } = await admin.query<{ name: string }>("select quote_ident(current_database()) as name");
  return rows[0]?.name ?? "";
}

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { createTestDatabase, useTestDatabase } from "@booking-events/harness/test-database";
import { afterAll, describe, expect, test } from "vitest";
import { createPool } from "../connect/pool.ts";
import { NotBegun } from "../connect/transaction.ts";
import { migrate } from "./migrate.ts";
import { probeWrites } from "./probe-writes.ts";

const { pool, url } = useTestDatabase({ maxConnections: 3 });
const folder = mkdtempSync(join(tmpdir(), "booking-events-probe-"));

afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("leaves nothing behind, however many run at the same time", async () => {
  await Promise.all(Array.from({ length: 5 }, () => probeWrites(pool)));
  const { rows } = await pool.query(
    `select (select count(*)::int from bookings) + (select count(*)::int from booking_events)
       + (select count(*)::int from booking_changes) as rows`,
  );
  expect(rows).toEqual([{ rows: 0 }]);
});

describe("fails if PostgreSQL takes no events", () => {
  test.each([
    [
      "a read-only database",
      (name: string) => `alter database ${name} set default_transaction_read_only = on`,
      "25006",
    ],
    ["a missing table", () => "alter table booking_changes rename to elsewhere", "42P01"],
    ["a locked table", () => "begin; lock table bookings", "55P03"],
  ])("%s", { timeout: 20_000 }, async (_, toSql, code) => {
    const other = await createTestDatabase();
    const options = { databaseUrl: other.url, applicationName: "test", maxConnections: 2, onError: () => {} };
    const [admin, probing] = [createPool(options), createPool(options)];
    const client = await admin.connect();
    try {
      await client.query(toSql(new URL(other.url).pathname.slice(1)));
      await expect(probeWrites(probing)).rejects.toMatchObject({ code });
    } finally {
      client.release(true);
      await Promise.all([admin.end(), probing.end()]);
      await other.drop();
    }
  });

  test("a synchronous standby that is not there", { timeout: 60_000 }, async () => {
    const server = await startOwnPostgres({ dir: join(folder, "postgres") });
    const options = { databaseUrl: server.url, applicationName: "test", maxConnections: 2, onError: () => {} };
    const probing = createPool({ ...options, limits: { statementTimeoutMs: 1_000 } });
    try {
      await migrate(server.url);
      await execute(server.url, "alter system set synchronous_standby_names = 'missing'");
      await execute(server.url, "select pg_reload_conf()");
      await expect(probeWrites(probing)).rejects.toThrow("Query read timeout");
      // PostgreSQL still waits to commit the first one.
      await expect(probeWrites(probing)).rejects.toMatchObject({ code: "55P03" });
    } finally {
      await probing.end();
      server.kill("SIGKILL");
      rmSync(server.home, { recursive: true, force: true });
    }
  });

  test("no server at the address, an unknown user, an unknown database", async () => {
    const changed = (change: Partial<URL>) => Object.assign(new URL(url), change).href;
    for (const databaseUrl of [
      changed({ port: String(await freePort()) }),
      changed({ username: "nobody" }),
      changed({ pathname: "/no_such_database" }),
    ]) {
      const other = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
      await expect(probeWrites(other), databaseUrl).rejects.toThrow(NotBegun);
      await other.end();
    }
  });
});

test("a connection gives up waiting for a lock, and PostgreSQL a client that takes no bytes", async () => {
  const { rows } = await pool.query(
    "select name, setting || coalesce(unit, '') as setting from pg_settings where name in ('lock_timeout', 'tcp_user_timeout') order by 1",
  );
  expect(rows).toEqual([
    { name: "lock_timeout", setting: "25000ms" },
    { name: "tcp_user_timeout", setting: "15000ms" },
  ]);
});

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { clients, Network } from "@booking-events/harness/network";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { discard, type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import type { PostgresServer } from "@booking-events/scripts/services";
import type pg from "pg";
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { migrate } from "../upkeep/migrate.ts";
import { withBriefConnection } from "./brief-connection.ts";
import { FormerPrimary } from "./leave-former-primary.ts";
import { createPool } from "./pool.ts";
import { ServerClient } from "./server-client.ts";
import { inTransaction } from "./transaction.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-servers-"));
const pools: pg.Pool[] = [];
let primary: PostgresServer;
let standby: PostgresStandby;

async function startBoth(): Promise<void> {
  const dir = mkdtempSync(join(folder, "servers-"));
  primary = await startOwnPostgres({ dir: join(dir, "primary") });
  standby = await startPostgresStandby({ primary, dir: join(dir, "standby") });
}

function stopBoth(): void {
  discard(primary, standby);
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** @param ports of the hosts, in the order of the URL */
function urlOf(ports: number[]): string {
  const url = new URL(primary.url);
  return url.href.replace(url.host, ports.map((port) => `127.0.0.1:${port}`).join(","));
}

function openPool(databaseUrl: string, limits: { connectTimeoutMs?: number } = {}): pg.Pool {
  const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {}, limits });
  pools.push(pool);
  return pool;
}

async function readPort(client: Pick<pg.ClientBase, "query">): Promise<number> {
  const { rows } = await client.query<{ port: number }>("select current_setting('port')::integer as port");
  return rows[0]?.port ?? 0;
}

describe("of a primary and its standby", () => {
  beforeAll(startBoth);
  afterAll(stopBoth);

  const both = () => [standby.port, primary.port];

  test("the one that takes writes is used, wherever the URL names it", async () => {
    expect(await readPort(openPool(urlOf([standby.port, primary.port])))).toBe(primary.port);
    expect(await readPort(openPool(urlOf([primary.port, standby.port])))).toBe(primary.port);
    await migrate(urlOf(both()));
    const location = { databaseUrl: urlOf(both()), schema: "public" };
    expect(await withBriefConnection(location, "test", readPort)).toBe(primary.port);
  });

  test("the URL of one host leads there, unless it asks for a server that takes writes", async () => {
    expect(await readPort(openPool(urlOf([standby.port])))).toBe(standby.port);
    const onlyWrites = (port: number) => openPool(`${urlOf([port])}?target_session_attrs=read-write`);
    expect(await readPort(onlyWrites(primary.port))).toBe(primary.port);
    await expect(onlyWrites(standby.port).query("select 1")).rejects.toMatchObject({ code: "NO_SUITABLE_SERVER" });
  });

  test("the error says if no server takes writes, or none answers", async () => {
    const readOnly = openPool(urlOf([standby.port, await freePort()]));
    await expect(readOnly.query("select 1")).rejects.toMatchObject({ code: "NO_SUITABLE_SERVER" });
    const pool = openPool(urlOf([await freePort(), await freePort()]));
    await expect(pool.query("select 1")).rejects.toMatchObject({ code: "ECONNREFUSED" });
  });

  test("a frozen server does not delay the choice of another one", async () => {
    // Waiting for the frozen one would take longer than the test may.
    const patient = { connectTimeoutMs: 600_000 };
    standby.kill("SIGSTOP");
    try {
      expect(await readPort(openPool(urlOf(both()), patient))).toBe(primary.port);
    } finally {
      standby.kill("SIGCONT");
    }
  });

  test("a connection on which a write was refused is not used again", async () => {
    const pool = openPool(urlOf(both()));
    const readPid = async (client: Pick<pg.ClientBase, "query">) =>
      (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]?.pid;
    let pid: number | undefined;
    const refused = inTransaction(pool, async (client) => {
      pid = await readPid(client);
      await client.query("set transaction read only");
      await client.query("create table never (one integer)");
    });
    await expect(refused).rejects.toMatchObject({ code: "25006" });
    expect(await readPid(pool)).not.toBe(pid);
  });

  test("a long statement goes on although another way to the primary is faster", async () => {
    const network = new Network({ delayMs: { least: 100, most: 100 } });
    onTestFinished(() => network.close());
    const slow = await network.expose("slow", primary.port, "pool");
    const fast = await network.expose("fast", primary.port, clients);
    const repair = network.cut({ from: clients, to: "fast" });
    const pool = openPool(urlOf([slow, fast]));
    (await pool.connect()).release();
    repair();
    // After 3 s, other servers are asked.
    await expect(pool.query("select pg_sleep(5)")).resolves.toMatchObject({ rowCount: 1 });
  });

  test("a URL that asks for another server than the one that takes writes is refused", () => {
    const open = (wanted: string) =>
      new ServerClient({ connectionString: `${urlOf(both())}?target_session_attrs=${wanted}` });
    expect(() => open("prefer-standby")).toThrow("target_session_attrs must be read-write");
    expect(() => open("read-write")).not.toThrow();
  });

  test("at last, a pool goes on with the promoted standby, and has everything that was committed", async () => {
    const pool = openPool(urlOf([primary.port, standby.port]));
    await pool.query("create table numbers (number integer)");
    await inTransaction(pool, (client) => client.query("insert into numbers values (1)"));
    primary.kill("SIGKILL");
    await primary.ended();
    await expect(pool.query("select 1")).rejects.toThrow();
    await expect(pool.query("select 1")).rejects.toMatchObject({ code: "NO_SUITABLE_SERVER" });
    await standby.promote();
    expect((await pool.query("select number from numbers")).rows).toEqual([{ number: 1 }]);
  });
});

test("statements on a frozen primary fail soon when a standby is promoted, and need not wait for their time-out", async () => {
  await startBoth();
  onTestFinished(stopBoth);
  const pool = openPool(urlOf([primary.port, standby.port]));
  const before = await pool.connect();
  before.release();
  primary.kill("SIGSTOP");
  // The time-out is 35 s, and a test has 30 s.
  const refused = expect(pool.query("select 1")).rejects.toThrow(FormerPrimary);
  await execute(standby.url, "select pg_promote()");
  await refused;
  await waitFor(async () => expect(await readPort(pool)).toBe(standby.port));
});

import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { follow } from "@booking-events/feed";
import { freePort, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { findOrInstallTool } from "@booking-events/scripts/services";
import { appendChanges, createPool, examineDatabase, inTransaction } from "@booking-events/store";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { prepareSurroundings } from "./surroundings.ts";

const secret = "a-secret-of-the-test-with-enough-characters";
const surroundings = prepareSurroundings(secret);
let folder: string;
let program = "pgbouncer";
const poolers: ChildProcess[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "booking-events-pgbouncer-"));
  await chmod(folder, 0o755);
  program = (await findOrInstallTool("pgbouncer", { say: console.log })) ?? program;
});

afterEach(() => {
  for (const pooler of poolers.splice(0)) pooler.kill("SIGKILL");
});

afterAll(() => rm(folder, { recursive: true, force: true }));

/** @returns the URL of the test's database by way of a PgBouncer in transaction mode, with two connections to it */
async function startPgBouncer(databaseUrl: string): Promise<string> {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl);
  const listenPort = await freePort();
  const config = join(folder, `${listenPort}.ini`);
  const users = join(folder, `${listenPort}.txt`);
  await writeFile(users, `"${decodeURIComponent(username)}" "${decodeURIComponent(password)}"\n`);
  await writeFile(
    config,
    `[databases]
* = host=${hostname} port=${port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${listenPort}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = transaction
default_pool_size = 2
`,
  );
  // It refuses to run as root.
  const user = process.getuid?.() === 0 ? ["-u", "nobody"] : [];
  const pooler = spawn(program, ["-q", ...user, config], { stdio: "ignore" });
  poolers.push(pooler);
  const url = new URL(databaseUrl);
  url.host = `127.0.0.1:${listenPort}`;
  url.pathname = pathname;
  await waitFor(() => execute(url.href, "select 1"));
  return url.href;
}

test("two workers migrate and apply events through PgBouncer in transaction mode", async () => {
  const { environment, pool, start } = surroundings();
  const viaPooler = { DATABASE_URL: await startPgBouncer(environment["DATABASE_URL"] ?? "") };
  await execute(
    environment["DATABASE_URL"] ?? "",
    "drop schema if exists public, public_test_partners cascade; create schema public",
  );
  const [ingest] = await Promise.all([
    start("ingest"),
    start("worker", { environment: viaPooler }),
    start("worker", { environment: viaPooler }),
  ]);
  for (let at = 0; at < 200; at += 1) {
    await postAccepted(ingest, { secret, kind: "update", reference: `TRIP-${at % 20}`, fields: { note: `${at}` } });
  }
  await waitFor(async () => {
    const { rows } = await pool.query(`select (select count(*)::int from booking_events) as events,
      (select count(*)::int from bookings where payload ->> 'note' >= '180') as current,
      (select count(*)::int from dead_letters) as dead`);
    expect(rows).toEqual([{ events: 200, current: 20, dead: 0 }]);
  });
  // Another start finds nothing to do, and no lock that an earlier one has left behind.
  await start("worker", { environment: viaPooler });
});

test("the limits of statements hold through PgBouncer, and stay there for nobody else", async () => {
  const url = await startPgBouncer(surroundings().environment["DATABASE_URL"] ?? "");
  const limits = `select current_setting('statement_timeout') as statement, current_setting('lock_timeout') as lock,
    current_setting('idle_in_transaction_session_timeout') as idle, current_setting('tcp_user_timeout') as silent`;
  const expected = [{ statement: "30s", lock: "25s", idle: "10s", silent: "15000" }];
  const pool = createPool({ databaseUrl: url, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    expect((await pool.query(limits)).rows).toEqual(expected);
    expect(await inTransaction(pool, async (client) => (await client.query(limits)).rows)).toEqual(expected);
    await expect(pool.query("select 1 / 0")).rejects.toThrow("division by zero");
    await execute(url, "do $$ begin assert current_setting('statement_timeout') = '0'; end $$");
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  } finally {
    await pool.end();
  }
});

test("of several poolers, the one that leads to a primary is found", async () => {
  const url = new URL(await startPgBouncer(surroundings().environment["DATABASE_URL"] ?? ""));
  const databaseUrl = url.href.replace(url.host, `127.0.0.1:${await freePort()},${url.host}`);
  const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    expect((await pool.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  } finally {
    await pool.end();
  }
});

test("programs follow the feed through PgBouncer, and count each change once", async () => {
  const { environment, pool } = surroundings();
  const database = await startPgBouncer(environment["DATABASE_URL"] ?? "");
  await pool.query("truncate booking_changes; create table handled (id bigint)");
  const stopping = new AbortController();
  const followers = [1, 2].map(() =>
    follow({
      name: "pooled",
      database,
      listenUrl: null,
      pollIntervalMs: 20,
      from: "now",
      signal: stopping.signal,
      onChange: async ({ id }, { client }) => void (await client.query("insert into handled values ($1)", [id])),
    }),
  );
  try {
    await waitFor(async () => expect((await pool.query("select from feed_readers")).rowCount).toBe(1));
    const subject = { partner: "acme", referenceKind: "trip", reference: "TRIP-1", change: "updated" } as const;
    const event = {
      bookingId: randomUUID(),
      eventId: "0199a000-0000-7000-8000-000000000001",
      previousEventId: null,
      sequence: 1,
    };
    for (let revision = 1; revision <= 100; revision += 1) {
      await inTransaction(pool, (client) => appendChanges(client, [{ ...subject, ...event, revision }]));
    }
    await waitFor(async () => {
      const { rows } = await pool.query("select count(*)::int as all, count(distinct id)::int as ids from handled");
      expect(rows).toEqual([{ all: 100, ids: 100 }]);
    });
  } finally {
    stopping.abort();
    await Promise.all(followers);
  }
});

test("the mode of the pooler is recognized", async () => {
  const databaseUrl = surroundings().environment["DATABASE_URL"] ?? "";
  const schema = "public";
  expect(await examineDatabase({ databaseUrl, schema })).toMatchObject({ isPooledByTransaction: false });
  const pooled = { databaseUrl: await startPgBouncer(databaseUrl), schema };
  expect(await examineDatabase(pooled)).toMatchObject({ isPooledByTransaction: true });
});

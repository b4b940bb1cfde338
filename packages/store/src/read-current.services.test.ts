import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, waitFor } from "@booking-events/harness";
import { discard, type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import { execute } from "@booking-events/harness/test-database";
import { type PostgresServer, startPostgres } from "@booking-events/scripts/services";
import type { Pool } from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { createPool, type Queryable } from "./database.ts";
import { type CurrentReader, createCurrentReader } from "./read-current.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-reads-"));
const pools: Pool[] = [];
let primary: PostgresServer;
let standby: PostgresStandby;

beforeAll(async () => {
  primary = await startPostgres({ dir: join(folder, "primary") });
  standby = await startPostgresStandby({ primary, dir: join(folder, "standby") });
  await execute(primary.url, "create table numbers (number integer)");
});

afterEach(async () => {
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
});

afterAll(() => {
  discard(standby, primary);
  rmSync(folder, { recursive: true, force: true });
});

function openReader(standbyUrl = standby.url, primaryUrl = primary.url): CurrentReader {
  const [one, other] = [primaryUrl, standbyUrl].map((databaseUrl) => {
    const pool = createPool({
      ...{ databaseUrl, applicationName: "test", maxConnections: 2, onError: () => {} },
      limits: { isReadOnly: true, connectTimeoutMs: 1_000, statementTimeoutMs: 1_000 },
    });
    pools.push(pool);
    return pool;
  }) as [Pool, Pool];
  return createCurrentReader(one, other);
}

async function readNumbers(client: Queryable) {
  const { rows } = await client.query<{ port: number; numbers: number[] | null }>(
    `select current_setting('port')::integer as port, array_agg(number order by number) as numbers from numbers`,
  );
  return rows[0];
}

test("a standby answers, and knows what was committed before the question", async () => {
  const reader = openReader();
  for (let number = 1; number <= 20; number += 1) {
    await execute(primary.url, `insert into numbers values (${number})`);
    // A busy machine may be late once, and the primary answers then.
    const numbers = (await reader.read(readNumbers))?.numbers;
    expect(numbers?.at(-1)).toBe(number);
  }
  await waitFor(async () => expect((await reader.read(readNumbers))?.port).toBe(standby.port));
});

test("while the standby's replay is paused, the primary answers what it has not replayed", async () => {
  await execute(primary.url, "truncate numbers");
  await execute(standby.url, "select pg_wal_replay_pause()");
  try {
    await execute(primary.url, "insert into numbers values (21)");
    const reader = openReader();
    expect(await reader.read(readNumbers)).toEqual({ port: primary.port, numbers: [21] });
    expect(reader.isStandbyAvoided()).toBe(true);
  } finally {
    await execute(standby.url, "select pg_wal_replay_resume()");
  }
  const reader = openReader();
  await waitFor(async () => expect(await reader.read(readNumbers)).toEqual({ port: standby.port, numbers: [21] }));
});

test("a standby that is frozen or gone costs no answer", async () => {
  const gone = openReader(`postgres://postgres@127.0.0.1:${await freePort()}/booking_events`);
  expect((await gone.read(readNumbers))?.port).toBe(primary.port);
  const frozen = openReader();
  standby.kill("SIGSTOP");
  try {
    expect((await frozen.read(readNumbers))?.port).toBe(primary.port);
  } finally {
    standby.kill("SIGCONT");
  }
});

test("nothing is answered if the primary does not say what it has", async () => {
  const pool = createPool({
    ...{ databaseUrl: `postgres://postgres@127.0.0.1:${await freePort()}/booking_events`, applicationName: "test" },
    ...{ maxConnections: 1, onError: () => {} },
  });
  pools.push(pool);
  await expect(createCurrentReader(pool, pool).read(readNumbers)).rejects.toThrow();
});

test("a server that was ahead of the standby that was promoted does not answer", async () => {
  await execute(primary.url, "truncate numbers");
  await waitFor(async () => expect((await openReader().read(readNumbers))?.port).toBe(standby.port));
  await standby.promote();
  await execute(primary.url, "create table lost as select generate_series(1, 100000)");
  await execute(standby.url, "insert into numbers values (22)");
  const reader = openReader(primary.url, standby.url);
  expect(await reader.read(readNumbers)).toEqual({ port: standby.port, numbers: [22] });
});

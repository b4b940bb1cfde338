import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { discard, type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import type { PostgresServer } from "@booking-events/scripts/services";
import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createPool } from "../connect/pool.ts";
import { findStandbyProblems } from "./find-standby-problems.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-standbys-"));
let primary: PostgresServer;
let standby: PostgresStandby;
let pool: Pool;

beforeAll(async () => {
  primary = await startOwnPostgres({ dir: join(folder, "primary") });
  standby = await startPostgresStandby({ primary, dir: join(folder, "standby") });
  pool = connect(primary.url);
});

afterAll(async () => {
  await pool?.end();
  discard(standby, primary);
  rmSync(folder, { recursive: true, force: true });
});

function connect(databaseUrl: string): Pool {
  return createPool({ databaseUrl, applicationName: "test", maxConnections: 1, onError: () => {} });
}

async function set(setting: string): Promise<void> {
  await execute(primary.url, `alter system set ${setting}`);
  await execute(primary.url, "select pg_reload_conf()");
}

async function untilFound(wanted: number, expected: unknown): Promise<void> {
  await waitFor(async () => expect(await findStandbyProblems(pool, wanted)).toEqual(expected));
}

test("a synchronous standby is enough for one, and not for two", async () => {
  await untilFound(1, []);
  await untilFound(2, [
    "PostgreSQL waits for 1 of 2 standbys: see synchronous_standby_names.",
    "PostgreSQL has 1 of 2 synchronous standbys connected, so commits wait.",
  ]);
});

test.each([
  ["'standby, other'", 1],
  ["'2 (standby, other)'", 2],
  ["'FIRST 2 (standby, other)'", 2],
  ["'any 3 (standby, other, another)'", 3],
  ["''", 0],
])("with synchronous_standby_names = %s, commits wait for %d", async (names, count) => {
  const sentence = `PostgreSQL waits for ${count} of 4 standbys: see synchronous_standby_names.`;
  await set(`synchronous_standby_names = ${names}`);
  await untilFound(4, expect.arrayContaining([sentence]));
  expect(await findStandbyProblems(pool, 0)).toEqual([]);
  await set("synchronous_standby_names = 'standby'");
  await untilFound(1, []);
});

test("a commit that does not wait for the standby's disk is reported", async () => {
  await set("synchronous_commit = 'remote_write'");
  await untilFound(1, [
    "PostgreSQL does not wait until standbys have a commit on disk: synchronous_commit is remote_write.",
  ]);
  await set("synchronous_commit = 'on'");
  await untilFound(1, []);
});

test("a role that may not see standbys judges by the settings", async () => {
  await execute(primary.url, "create role plain login password 'plain'");
  const plain = connect(Object.assign(new URL(primary.url), { username: "plain", password: "plain" }).href);
  try {
    expect(await findStandbyProblems(plain, 1)).toEqual([]);
    expect(await findStandbyProblems(plain, 2)).toEqual([
      "PostgreSQL waits for 1 of 2 standbys: see synchronous_standby_names.",
    ]);
  } finally {
    await plain.end();
  }
});

test("a standby that is gone is reported", async () => {
  standby.kill("SIGKILL");
  await untilFound(1, ["PostgreSQL has 0 of 1 synchronous standbys connected, so commits wait."]);
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@booking-events/harness";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { execute } from "@booking-events/harness/test-database";
import type { PostgresServer } from "@booking-events/scripts/services";
import { createPool } from "@booking-events/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { runOps } from "./testing/run-ops.ts";

const secret = "canary";
let folder: string;
let postgres: PostgresServer;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-database-"));
  postgres = await startOwnPostgres({
    dir: folder,
    settings: { max_connections: "6", superuser_reserved_connections: "1", reserved_connections: "0" },
  });
  await execute(postgres.url, `create role guest login password '${secret}'`);
}, 60_000);

afterAll(async () => {
  await postgres?.stop();
  if (postgres) await rm(postgres.home, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
});

function urlWith(changes: Partial<Pick<URL, "username" | "password" | "pathname" | "host" | "search">>): string {
  return Object.assign(new URL(postgres.url), changes).href;
}

async function readProblem(databaseUrl: string): Promise<string> {
  const { stderr } = await runOps(["events", "list"], { environment: { DATABASE_URL: databaseUrl } });
  expect(stderr).not.toContain(secret);
  return stderr;
}

const cases: [name: string, toUrl: () => Promise<string> | string, expected: RegExp][] = [
  [
    "a wrong password",
    () => urlWith({ username: "guest", password: `${secret}-wrong` }),
    /refuses: "password authentication failed for user "guest"" \(28P01\)\. Correct the user or the password in DATABASE_URL, or in DATABASE_PASSWORD/,
  ],
  [
    "no password",
    () => urlWith({ username: "guest", password: "" }),
    /can't be reached \(it demands a password\)\. Set it in DATABASE_URL or DATABASE_PASSWORD/,
  ],
  [
    "another database",
    () => urlWith({ pathname: "/another" }),
    /refuses: "database "another" does not exist" \(3D000\)\. Correct the name of the database in DATABASE_URL/,
  ],
  [
    "TLS where there is none",
    () => urlWith({ search: "?sslmode=require" }),
    /can't be reached \(it does not speak TLS\)\. Switch ssl on in PostgreSQL, or leave sslmode out of DATABASE_URL/,
  ],
  [
    "a server that does not run",
    async () => urlWith({ host: `127.0.0.1:${await freePort()}` }),
    /can't be reached \(ECONNREFUSED\)\. Nothing listens there: start PostgreSQL, or correct .+ DATABASE_URL/,
  ],
  [
    "a name that nobody knows",
    () => urlWith({ host: "nowhere.invalid:5432" }),
    /can't be reached \((ENOTFOUND|EAI_AGAIN)\)\. The name server does not know the host: correct it in DATABASE_URL/,
  ],
];

test.each(cases)("an operator reads why PostgreSQL can't be used, and what helps: %s", async (_, toUrl, expected) => {
  expect(await readProblem(await toUrl())).toMatch(expected);
});

test("an operator reads that there are too many connections, and what helps", async () => {
  const databaseUrl = urlWith({ username: "guest", password: secret });
  const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 5, onError: () => {} });
  const connecting = await Promise.allSettled(Array.from({ length: 5 }, () => pool.connect()));
  try {
    expect(await readProblem(databaseUrl)).toMatch(
      /refuses: "(sorry, too many clients already|remaining connection slots .+)" \(53300\)\. Find out who has so many/,
    );
  } finally {
    for (const result of connecting) if (result.status === "fulfilled") result.value.release();
    await pool.end();
  }
});

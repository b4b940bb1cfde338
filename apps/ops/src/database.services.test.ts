import { chown, mkdtemp, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { createCertificate } from "@booking-events/scripts/certificates";
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
  const pool = createPool({ databaseUrl, applicationName: "test", maxConnections: 20, onError: () => {} });
  const connect = () => Promise.allSettled(Array.from({ length: 5 }, () => pool.connect()));
  const connecting = await connect();
  try {
    await waitFor(async () => {
      // Connections of the tests before may end only now, and leave their places.
      connecting.push(...(await connect()));
      expect(await readProblem(databaseUrl)).toMatch(
        /refuses: "(sorry, too many clients already|remaining connection slots .+)" \(53300\)\. Find out who has so many/,
      );
    });
  } finally {
    for (const result of connecting) if (result.status === "fulfilled") result.value.release();
    await pool.end();
  }
});

/** Replaces a file of PostgreSQL's, which only its own user may read. */
async function install(name: string, text: string): Promise<void> {
  const data = join(postgres.home, "data");
  const { uid, gid } = await stat(data);
  await writeFile(join(data, `${name}.new`), text, { mode: 0o600 });
  await chown(join(data, `${name}.new`), uid, gid);
  await rename(join(data, `${name}.new`), join(data, name));
}

const guest = () => urlWith({ username: "guest", password: secret });

test.each([
  ["rejects it", (own: string) => `host all guest all reject\n${own}`, "pg_hba.conf rejects connection for host"],
  ["does not name it", () => "host all postgres all scram-sha-256\n", "no pg_hba.conf entry for host"],
  ["admits it over TLS only", (own: string) => `hostnossl all guest all reject\n${own}`, "no encryption"],
])("an operator reads that pg_hba.conf %s, and what helps", async (_, toText, quoted) => {
  const own = await readFile(join(postgres.home, "data", "pg_hba.conf"), "utf8");
  try {
    await install("pg_hba.conf", toText(own));
    await execute(postgres.url, "select pg_reload_conf()");
    // New connections are judged by the old rules until PostgreSQL has read the new ones.
    await waitFor(async () => expect(await readProblem(guest())).toContain(quoted));
    expect(await readProblem(guest())).toMatch(
      /refuses: ".+" \(28000\)\. Correct the user in DATABASE_URL, or let pg_hba\.conf admit it from this host, with or without TLS/,
    );
  } finally {
    await install("pg_hba.conf", own);
    await execute(postgres.url, "select pg_reload_conf()");
  }
});

test("an operator reads what is wrong with PostgreSQL's certificate, and what helps", async () => {
  const [valid, expired] = await Promise.all([
    createCertificate(),
    createCertificate({ notBeforeDate: new Date("2024-01-01"), notAfterDate: new Date("2025-01-01") }),
  ]);
  const trusted = join(folder, "authorities.pem");
  await writeFile(trusted, `${valid.certificate}\n${expired.certificate}`);
  const urlOf = (hostname: string, search: string) =>
    Object.assign(new URL(guest()), { hostname, search: `?sslmode=verify-full${search}` }).href;
  const serve = async ({ certificate, key }: typeof valid) => {
    await install("server.pem", `${certificate}\n${key}`);
    await execute(postgres.url, "select pg_reload_conf()");
  };
  await serve(valid);
  for (const setting of ["ssl_cert_file = 'server.pem'", "ssl_key_file = 'server.pem'", "ssl = on"])
    await execute(postgres.url, `alter system set ${setting}`);
  await execute(postgres.url, "select pg_reload_conf()");
  const expectProblem = (url: string, expected: RegExp) =>
    waitFor(async () => expect(await readProblem(url)).toMatch(expected));
  try {
    await expectProblem(
      urlOf("localhost", ""),
      /can't be reached \(DEPTH_ZERO_SELF_SIGNED_CERT\)\. Nobody whom this process trusts has signed its certificate: name/,
    );
    await expectProblem(
      urlOf("127.0.0.1", `&sslrootcert=${trusted}`),
      /can't be reached \(ERR_TLS_CERT_ALTNAME_INVALID\)\. Its certificate is for another name: use one of its names in/,
    );
    await serve(expired);
    await expectProblem(
      urlOf("localhost", `&sslrootcert=${trusted}`),
      /can't be reached \(CERT_HAS_EXPIRED\)\. Its certificate has expired: renew it, and let PostgreSQL read it\./,
    );
  } finally {
    await execute(postgres.url, "alter system set ssl = off");
    await execute(postgres.url, "select pg_reload_conf()");
  }
});

import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { startOwnPostgres } from "@booking-events/harness/own-postgres";
import { type Check, checkEncryption, checkOvercommit, checkRedis, hasSpace } from "@booking-events/operations";
import { type DataServer, type PostgresServer, startRedis } from "@booking-events/scripts/services";
import { migrate } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

let folder: string;
let partnersFile: string;
let redis: DataServer;
let postgres: PostgresServer;
let redisAdmin: Redis;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "ops-doctor-"));
  partnersFile = join(folder, "partners.json");
  [redis, postgres] = await Promise.all([
    startRedis({ dir: join(folder, "redis"), maxmemory: "100mb" }),
    startOwnPostgres({ dir: join(folder, "postgres") }),
  ]);
  redisAdmin = new Redis(redis.url);
  await migrate(postgres.url);
}, 60_000);

afterAll(async () => {
  redisAdmin?.disconnect();
  await Promise.all([redis?.stop(), postgres?.stop()]);
  if (postgres) await rm(postgres.home, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  await rm(partnersFile, { force: true });
  await runOps(["partners", "add", "acme"], { environment: { PARTNERS_FILE: partnersFile } });
});

async function doctor(environment: Record<string, string> = {}, now = new Date()) {
  const { exitCode, stdout } = await runOps(["doctor", "--json"], {
    environment: { REDIS_URL: redis.url, DATABASE_URL: postgres.url, PARTNERS_FILE: partnersFile, ...environment },
    now,
  });
  const checks = JSON.parse(stdout) as Check[];
  // The disk of the machine that runs the tests may be full, and its kernel refuse memory.
  const ofMachine = /space on its disk$|^Linux lets Redis fork$/;
  const problems = checks.filter(({ name, state }) => state === "problem" && !ofMachine.test(name));
  return { exitCode, checks, problems };
}

test("a new Redis and PostgreSQL as npm start sets them up have no problem", async () => {
  const { exitCode, checks, problems } = await doctor();
  expect(problems).toEqual([]);
  expect(exitCode).toBe(checks.some(({ state }) => state === "problem") ? 1 : 0);
});

test("with DATABASE_STANDBYS_TO_CONFIRM, commits must wait for standbys", async () => {
  const { problems } = await doctor({ DATABASE_STANDBYS_TO_CONFIRM: "1" });
  expect(problems.map(({ name }) => name)).toEqual(Array(2).fill("Standbys have what was committed"));
});

const alterSystem = async (setting: string) => {
  await execute(postgres.url, `alter system ${setting}`);
  await execute(postgres.url, "select pg_reload_conf()");
};
const day = 24 * 60 * 60_000;

test.each<[what: string, name: string, act: () => Promise<unknown>, undo: () => Promise<unknown>]>([
  [
    "PostgreSQL logs rows",
    "PostgreSQL logs no rows",
    // The setting of its command line counts more than that of the system.
    () => execute(postgres.url, "alter database booking_events set log_error_verbosity = 'default'"),
    () => execute(postgres.url, "alter database booking_events reset log_error_verbosity"),
  ],
  [
    "PostgreSQL logs all statements",
    "PostgreSQL logs no parameters",
    () => alterSystem("set log_statement = 'all'"),
    () => alterSystem("reset log_statement"),
  ],
  [
    "PostgreSQL logs slow statements",
    "PostgreSQL logs no parameters",
    () => alterSystem("set log_min_duration_statement = '1s'"),
    () => alterSystem("reset log_min_duration_statement"),
  ],
  [
    "PostgreSQL does not write to disk",
    "PostgreSQL keeps events",
    () => alterSystem("set fsync = off"),
    () => alterSystem("reset fsync"),
  ],
  [
    "a table is not logged",
    "PostgreSQL keeps events",
    () => execute(postgres.url, "alter table dead_letters set unlogged"),
    () => execute(postgres.url, "alter table dead_letters set logged"),
  ],
  [
    "PostgreSQL would misread parameters",
    "PostgreSQL keeps events",
    () => alterSystem("set array_nulls = off"),
    () => alterSystem("reset array_nulls"),
  ],
  [
    "the C library under PostgreSQL has changed",
    "PostgreSQL sorts text as its indexes do",
    () => execute(postgres.url, "update pg_database set datcollversion = '1.1' where datname = current_database()"),
    () => execute(postgres.url, "alter database booking_events refresh collation version"),
  ],
  [
    "PostgreSQL does not vacuum",
    "PostgreSQL cleans its tables up",
    () => alterSystem("set autovacuum = off"),
    () => alterSystem("reset autovacuum"),
  ],
  [
    "PostgreSQL takes no writes",
    "PostgreSQL takes writes",
    () => execute(postgres.url, "alter database booking_events set default_transaction_read_only = on"),
    () => execute(postgres.url, "begin read write; alter database booking_events reset all; commit"),
  ],
  [
    "a migration is missing",
    "The database is migrated",
    () => execute(postgres.url, "update schema_migrations set name = 'x' || name where name like '0003%'"),
    () => execute(postgres.url, "update schema_migrations set name = right(name, -1) where name like 'x%'"),
  ],
  [
    "others may write the partners file",
    "Only its owner can change the partners file",
    () => chmod(partnersFile, 0o666),
    async () => {},
  ],
  ["the partners file is invalid", "The partners file is valid", () => writeFile(partnersFile, "{}"), async () => {}],
])("it notices that %s, and says how to correct it", async (_, name, act, undo) => {
  await act();
  try {
    const problem = { name, state: "problem", detail: expect.any(String), why: expect.any(String) };
    await expect
      .poll(() => doctor())
      .toMatchObject({
        exitCode: 1,
        problems: [{ ...problem, remedy: expect.stringMatching(/./) }],
      });
  } finally {
    await undo();
  }
});

test("it notices secrets that expire within 14 days if there is no later one", async () => {
  const environment = { PARTNERS_FILE: partnersFile };
  await runOps(["partners", "add", "short", "--expires", "20d"], { environment });
  expect((await doctor()).problems).toEqual([]);
  const later = new Date(Date.now() + 7 * day);
  expect((await doctor({}, later)).problems).toMatchObject([
    { name: "Partners have valid secrets", detail: expect.stringMatching(/^the last secret of short expires on 20/) },
  ]);
  await runOps(["partners", "rotate", "short"], { environment });
  expect((await doctor({}, later)).problems).toEqual([]);
});

test("it notices settings of Redis that lose events, and that CONFIG SET alone does not keep", async () => {
  await redisAdmin.config("SET", "appendfsync", "everysec");
  await redisAdmin.config("SET", "maxmemory", "0");
  expect((await doctor()).problems).toMatchObject([
    {
      name: "Redis keeps events",
      remedy: 'redis-cli -u "$REDIS_URL" CONFIG SET appendfsync always && redis-cli -u "$REDIS_URL" CONFIG REWRITE',
    },
    { name: "Redis has a memory limit" },
    { name: "Redis keeps its settings", detail: "CONFIG SET was used 2 ×, CONFIG REWRITE never" },
  ]);
  await redisAdmin.config("SET", "appendfsync", "always");
  await redisAdmin.config("SET", "maxmemory", "100mb");
  await redisAdmin.config("REWRITE");
  expect((await doctor()).problems).toEqual([]);
});

test("it notices that Redis would never shorten its append-only file", async () => {
  await redisAdmin.config("SET", "auto-aof-rewrite-percentage", 0);
  await redisAdmin.config("REWRITE");
  expect((await doctor()).problems).toMatchObject([
    { name: "Redis shortens its append-only file", remedy: expect.stringContaining("CONFIG SET") },
  ]);
  await redisAdmin.config("SET", "auto-aof-rewrite-percentage", 100);
  await redisAdmin.config("REWRITE");
  expect((await doctor()).problems).toEqual([]);
});

test("it says what it cannot see, and goes on without Redis or PostgreSQL", async () => {
  await redisAdmin.acl("SETUSER", "ops", "on", ">pass", "~*", "+@all", "-config|get");
  const restricted = Object.assign(new URL(redis.url), { username: "ops", password: "pass" }).href;
  expect((await doctor({ REDIS_URL: restricted })).checks).toContainEqual(
    expect.objectContaining({ name: "Redis writes each event to disk", state: "unknown" }),
  );
  const nowhere = `127.0.0.1:${await freePort()}`;
  const out = await doctor({
    REDIS_URL: `redis://:canary@${nowhere}`,
    DATABASE_URL: `postgres://any:canary@${nowhere}/any`,
  });
  expect(out.problems).toMatchObject([{ name: "Redis answers" }, { name: "PostgreSQL answers" }]);
  expect(out.checks).toContainEqual(expect.objectContaining({ name: "The partners file is valid", state: "ok" }));
  expect(JSON.stringify(out)).not.toContain("canary");
});

test.each([
  ["redis://redis.example.com", "problem", "problem"],
  ["redis://redis:6379", "unknown", "unknown"],
  ["rediss://user:pass@redis.example.com", "ok", "ok"],
  ["redis://127.0.0.1", "ok", "ok"],
])("without password or encryption, %s is judged by who may reach it", (url, password, encryption) => {
  const checks = checkRedis(
    {
      ...{ durabilityProblems: [], sequenceProblems: [], canReadFsync: true, maxMemoryBytes: 1, folder: null },
      ...{ rewriteAfterPercent: 100, isRewriteFailing: false },
      ...{ configChanges: null, clockAheadMs: 2_000, clockErrorMs: 1 },
      ...{ minReplicasToWrite: 0, requiresFullCoverage: null, replicaCount: 0 },
    },
    { redisServers: url, replicasToConfirm: 0 },
  );
  const stateOf = (name: string) => checks.find((check) => check.name === name)?.state;
  expect(stateOf("Redis has a password")).toBe(password);
  expect(stateOf("The connection to Redis is encrypted")).toBe(encryption);
  expect(stateOf("The clock of Redis is right")).toBe("problem");
});

test.each([
  ["redis://127.0.0.1", 0, 0, 0, undefined, undefined],
  ["redis://127.0.0.1", 0, 1, 0, "problem", undefined],
  [{ cluster: [{ host: "127.0.0.1", port: 1 }] }, 0, 0, 0, "problem", undefined],
  [{ cluster: [{ host: "127.0.0.1", port: 1 }] }, 1, 2, 1, "ok", "ok"],
  [{ sentinels: [{ host: "127.0.0.1", port: 1 }], name: "x" }, 1, 2, 0, "ok", "problem"],
  ["redis://127.0.0.1", 1, 2, 2, "ok", "problem"],
  ["redis://127.0.0.1", 1, 2, null, "ok", "unknown"],
] as const)("at %j, with %d replicas to confirm of %d and min-replicas-to-write %s, a failover is judged", (...row) => {
  const [redisServers, replicasToConfirm, replicaCount, minReplicasToWrite, confirmed, fits] = row;
  const checks = checkRedis(
    {
      ...{ durabilityProblems: [], sequenceProblems: [], canReadFsync: true, maxMemoryBytes: 1, folder: null },
      ...{ rewriteAfterPercent: 100, isRewriteFailing: false },
      ...{
        configChanges: null,
        clockAheadMs: 0,
        clockErrorMs: 1,
        requiresFullCoverage: null,
        minReplicasToWrite,
        replicaCount,
      },
    },
    { redisServers, replicasToConfirm },
  );
  const stateOf = (name: string) => checks.find((check) => check.name === name)?.state;
  expect(stateOf("Replicas confirm each event")).toBe(confirmed);
  expect(stateOf("Redis demands as many replicas as must confirm")).toBe(fits);
});

test.each([
  ["redis://redis.example.com", "problem"],
  ["redis://172.15.0.1", "problem"],
  ["redis://172.31.254.21", "unknown"],
  ["redis://sentinel-1", "unknown"],
  ["redis://127.0.0.1", "ok"],
])("a connection to %s without TLS is judged by who may read it", (url, state) => {
  expect(checkEncryption("Redis", new URL(url), false, "").state).toBe(state);
});

test.each([
  ["0\n", "problem"],
  ["1\n", "ok"],
  ["2\n", "problem"],
])("vm.overcommit_memory of %j is judged on Redis' own host", async (setting, state) => {
  const file = join(folder, "overcommit_memory");
  await writeFile(file, setting);
  expect(checkOvercommit(new URL("redis://127.0.0.1"), file).state).toBe(state);
  expect(checkOvercommit(new URL("redis://redis.example.com"), file).state).toBe("unknown");
  expect(checkOvercommit(new URL("redis://127.0.0.1"), join(folder, "nowhere")).state).toBe("ok");
});

test.each([
  [2, 10, true],
  [0.9, 10, false],
  [11, 1_000, true],
  [9, 1_000, false],
])("%d GB of %d GB are enough: %s", (free, size, isEnough) => {
  expect(hasSpace({ freeBytes: free * 2 ** 30, bytes: size * 2 ** 30 })).toBe(isEnough);
});

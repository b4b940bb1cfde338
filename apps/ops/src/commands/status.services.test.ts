import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, redisUrl, uniquePrefix, waitFor } from "@booking-events/harness";
import { partner } from "@booking-events/harness/partners";
import { writePartnersFile } from "@booking-events/harness/partners-file";
import { useTestDatabase } from "@booking-events/harness/test-database";
import {
  changeQueue,
  createConsumer,
  createProducer,
  createTokenBuckets,
  openRecords,
  queueName,
} from "@booking-events/queue";
import { version } from "@booking-events/runtime";
import { startRedis } from "@booking-events/scripts/services";
import { writeDeadLetter } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runOps, spawnUnreadOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
const now = new Date();
const minuteMs = 60_000;
let prefix: string;
const cleanups: (() => unknown)[] = [];

beforeEach(async () => {
  prefix = uniquePrefix();
  await pool.query(`truncate bookings, booking_events, booking_changes, dead_letters, feed_readers cascade;
    update feed_position set last_id = 0, kept_from = 1`);
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function status(args: string[] = [], environment: Record<string, string> = {}, at = now) {
  return runOps(["status", ...args], {
    environment: {
      ...{ REDIS_URL: redisUrl(), DATABASE_URL: url, QUEUE_PREFIX: prefix },
      ...{ PARTNERS_FILE: "/nowhere/partners.json", ...environment },
    },
    now: at,
  });
}

async function readJson(environment: Record<string, string> = {}, at = now) {
  const { exitCode, stdout } = await status(["--json"], environment, at);
  const read = JSON.parse(stdout) as { queue: never; database: never; quotas: never; needsAttention: string[] };
  // For speed, the PostgreSQL that tests share runs without fsync.
  const needsAttention = read.needsAttention.filter((concern) => !concern.startsWith("PostgreSQL may lose"));
  return { ...read, exitCode, needsAttention };
}

const ingestAndWorker = async () => {
  const buckets = createTokenBuckets({ redisServers: redisUrl(), prefix, onError: () => {} });
  cleanups.push(() => buckets.close());
  const consumer = createConsumer({
    ...{ redisServers: redisUrl(), prefix, version, concurrency: 1, maxHeldBytes: 1_000_000, onError: () => {} },
    handle: async () => {},
  });
  cleanups.push(() => consumer.close());
  await consumer.recordAlive();
  return consumer;
};

async function queueEvent(receivedAt: Date): Promise<void> {
  const producer = createProducer({ redisServers: redisUrl(), prefix, onError: () => {} });
  await waitFor(async () => expect(await producer.findProblems()).toEqual([]));
  await producer.enqueue({
    ...{ eventId: randomUUID(), kind: "create", partner: "acme", receivedAt: receivedAt.toISOString() },
    payload: { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Canary" },
  } as never);
  await producer.close();
}

/** Events of a partner, one at each of the times before now. */
async function logEvents(partner: string, minutesAgo: number[]): Promise<void> {
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at, processed_at)
     select (left(first_event_id(at)::text, 24) || left(md5($1 || at), 12))::uuid, $1, 'update', 'trip', 'T', '', 1, '{}', '',
       'updated', at, at
     from unnest($2::timestamptz[]) as at`,
    [partner, minutesAgo.map((minutes) => new Date(now.getTime() - minutes * minuteMs))],
  );
}

const everyTenMinutes = (from: number, until: number) =>
  Array.from({ length: (until - from) / 10 }, (_, index) => from + 10 * index);

test("nothing needs attention while an ingest and a worker run and all events have been applied", async () => {
  await ingestAndWorker();
  await logEvents("acme", [1, 2, 3, 4]);
  const { needsAttention, queue, database } = await readJson();
  expect(needsAttention).toEqual([]);
  expect(queue).toMatchObject({
    counts: { waiting: 0, held: 0, delayed: 0 },
    ...{ workers: [{ version, pid: process.pid }], ingestCount: 1, isPaused: false, oldestQueuedAt: null, drainMs: 0 },
  });
  expect(database).toMatchObject({
    migrations: { missing: [], unknown: [] },
    data: { rates: { windowMs: 5 * minuteMs, partners: [{ partner: "acme", events: 4 }] }, deadLetters: [] },
  });
});

test("the screen is 80 columns wide, and has neither guests' data nor passwords", async () => {
  await queueEvent(now);
  await logEvents("a-partner-with-a-name-that-is-as-long-as-a-name-of-a-partner-may-be", [1]);
  const { exitCode, stdout, stderr } = await status();
  expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringMatching(/^Needs attention: \d\.\n$/) });
  for (const line of stdout.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  expect(stdout).toMatch(/^Queue +1 waiting, 0 held, 0 delayed, oldest \d s, not getting shorter$/m);
  const { password } = new URL(redisUrl());
  expect(password).not.toBe("");
  for (const secret of [password, "Canary", "TRIP-1"]) expect(stdout).not.toContain(secret);
});

test("a partner that has nearly used up its quota needs attention, and says so when it has", async () => {
  const folder = await mkdtemp(join(tmpdir(), "ops-status-"));
  cleanups.push(() => rm(folder, { recursive: true }));
  const path = join(folder, "partners.json");
  writePartnersFile(
    path,
    ["acme", "globex", "zenith"].map((id) => partner(id, {}, { bytesPerDay: 1_000 })),
  );
  await ingestAndWorker();
  const buckets = createTokenBuckets({ redisServers: redisUrl(), prefix, onError: () => {}, deadlineMs: 10_000 });
  cleanups.push(() => buckets.close());
  const size = { perSecond: 1, burst: 1 };
  await waitFor(() => buckets.take("acme", size, 0, 0, 900));
  await buckets.take("globex", size, 0, 0, 950);
  await buckets.take("zenith", size, 0, 0, 1_000);
  const { needsAttention, quotas } = await readJson({ PARTNERS_FILE: path });
  expect(quotas).toContainEqual({ partner: "globex", bytesPerDay: 1_000, bytesToday: 950 });
  expect(needsAttention).toEqual([
    expect.stringContaining("Partner globex has used 95 % of its quota of 1 kB a day."),
    expect.stringContaining("Partner zenith has used up its quota of 1 kB a day"),
  ]);
});

test("missing workers and ingests, a paused queue, and dead letters need attention", async () => {
  await changeQueue({ redisServers: redisUrl(), prefix, shardCount: 1 }, { isPaused: true });
  const letter = { partner: "acme", kind: "create", referenceKind: "trip", reference: "T", sequence: 1 } as const;
  for (const errorCode of ["STALLED", "22012", "STALLED"]) {
    const failure = { errorCode, error: "It failed.", attempts: 1, envelope: Buffer.from("{}") };
    await writeDeadLetter(pool, { eventId: randomUUID(), ...letter, ...failure });
  }
  const { exitCode, needsAttention, database } = await readJson();
  expect({ exitCode, needsAttention }).toEqual({
    exitCode: 1,
    needsAttention: [
      expect.stringContaining("queue resume"),
      expect.stringContaining("No ingest runs"),
      expect.stringContaining("No worker takes events"),
      expect.stringContaining("Events could not be applied: 3"),
    ],
  });
  expect(database).toMatchObject({
    data: {
      deadLetters: [
        { code: "STALLED", count: 2 },
        { code: "22012", count: 1 },
      ],
    },
  });
});

test("a program that follows the feed needs attention while it is more than a minute behind", async () => {
  await ingestAndWorker();
  await pool.query("update feed_position set last_id = 7");
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
       sequence, changed_at)
     select id, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id, now() - make_interval(hours => 8 - id)
     from generate_series(3, 7) as id`,
  );
  await pool.query(
    `insert into feed_readers (name, last_id, seen_at) values
       ('arrivals', 4, now() - interval '30.5 hours'), ('invoices', 7, now())`,
  );
  const { exitCode, needsAttention, database } = await readJson();
  expect({ exitCode, needsAttention }).toEqual({
    exitCode: 1,
    needsAttention: [
      'Reader arrivals of the feed is 3 changes and 3 h behind. It was last seen 30 h ago. See "FeedReaderBehind" in docs/runbook.md.',
    ],
  });
  expect(database).toMatchObject({
    data: { feedReaders: [{ name: "arrivals", lagChanges: 3 }, { name: "invoices" }] },
  });
  expect((await status()).stdout).toMatch(/^Readers +arrivals 3 changes behind, invoices up to date$/m);
  await pool.query("update feed_position set kept_from = 6");
  expect((await readJson()).needsAttention).toEqual([expect.stringContaining("ops feed reset arrivals")]);
});

test("what a reader can't be given needs attention, but not its lag while it is paused or takes nothing", async () => {
  await ingestAndWorker();
  await pool.query("update feed_position set last_id = 7");
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
       sequence, changed_at)
     select id, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id, now() - interval '3 hours'
     from generate_series(1, 7) as id`,
  );
  await pool.query(
    `insert into feed_readers (name, last_id, breaker_opened_at, failing_since) values
       ('down', 4, now() - interval '16.5 minutes', now() - interval '95 hours'),
       ('gone', 4, null, now() - interval '97 hours'), ('paused', 4, null, now() - interval '97 hours'),
       ('restarts', 4, now(), now()), ('works', 7, null, null)`,
  );
  await pool.query(
    `insert into subscriptions (name, token_sha256, payload, from_id, paused_at, created_by)
     values ('paused', sha256('token'), 'thin', 0, now(), 'Ada')`,
  );
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, retry_at, died_at) values
       ('works', gen_random_uuid(), 1, null, now()), ('works', gen_random_uuid(), 2, now(), null)`,
  );
  const { needsAttention } = await readJson();
  expect(new Set(needsAttention)).toEqual(
    new Set([
      'Reader down of the feed has taken nothing for 16 min. See "FeedBreakerOpen" in docs/runbook.md.',
      'Everything that reader gone of the feed was given has failed for 4 d. See "SubscriptionFailing" in docs/runbook.md.',
      "The subscription paused is paused. See why: ops subscriptions show paused",
      "Reader works of the feed gave up 1 booking. See why: ops feed dead-letters works",
    ]),
  );
  const { stdout } = await status();
  expect(stdout).toContain("down 3 changes behind (failing)");
  expect(stdout.replaceAll(/\s+/g, " ")).toContain("paused 3 changes behind (paused)");
  expect(stdout.replaceAll(/\s+/g, " ")).toContain("works up to date (1 parked, 1 dead)");
  await pool.query("truncate subscriptions");
});

test("an enabled partner is silent if it pauses for longer than in the week before, whatever its rhythm", async () => {
  await ingestAndWorker();
  const hour = 60;
  await logEvents("busy-and-silent", everyTenMinutes(3 * hour, 48 * hour));
  await logEvents("busy", everyTenMinutes(0, 48 * hour));
  await logEvents("by-day-only", [...everyTenMinutes(3 * hour, 8 * hour), ...everyTenMinutes(20 * hour, 32 * hour)]);
  await logEvents("new", [3 * hour, 4 * hour]);
  expect((await readJson()).needsAttention).toEqual([
    "Partner busy-and-silent has been silent for 3 h; its longest pause of the week before was about 30 min. " +
      "Ask the partner.",
  ]);

  const folder = await mkdtemp(join(tmpdir(), "ops-status-"));
  cleanups.push(() => rm(folder, { recursive: true }));
  const withoutIt = { PARTNERS_FILE: join(folder, "partners.json") };
  await runOps(["partners", "add", "busy"], { environment: withoutIt });
  expect((await readJson(withoutIt)).needsAttention).toEqual([]);

  const records = openRecords({
    ...{ redisServers: redisUrl(), prefix, connectionName: "test", onError: () => {} },
  });
  cleanups.push(() => records.close());
  await waitFor(() =>
    records.writeLastUses([{ partner: "busy-and-silent", secretId: "s1", usedAt: now }]).then(() => true),
  );
  expect((await readJson()).needsAttention).toEqual([]);

  await runOps(["partners", "add", "rare"], { environment: withoutIt });
  await records.writeLastUses([{ partner: "rare", secretId: "s1", usedAt: now }]);
  expect(await readJson(withoutIt)).toMatchObject({ lastHeardOf: { rare: now.toISOString() } });
});

test("a worker that was told to stop is not listed any more", async () => {
  const worker = await ingestAndWorker();
  await worker.drain();
  await waitFor(async () =>
    expect((await readJson()).needsAttention).toEqual([expect.stringContaining("No worker takes events")]),
  );
});

test("an event that waits for long needs attention", async () => {
  await ingestAndWorker();
  await queueEvent(now);
  const { needsAttention } = await readJson({}, new Date(now.getTime() + 6 * minuteMs));
  expect(needsAttention).toContainEqual(expect.stringMatching(/^The oldest event has waited for [56] min/));
});

test("events that wait for another attempt need attention", async () => {
  await ingestAndWorker();
  const redis = new Redis(redisUrl());
  await redis.zadd(`${prefix}:${queueName}:delayed`, Date.now() + 60_000, randomUUID());
  redis.disconnect();
  const { needsAttention } = await readJson();
  expect(needsAttention).toEqual([expect.stringMatching(/^Events failed and wait for another attempt: 1\./)]);
});

test.each([0, 1])("month %i without a partition needs attention, even if later ones have theirs", async (ahead) => {
  await ingestAndWorker();
  const month = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead));
  const monthAfter = new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + ahead + 1));
  cleanups.push(() => pool.query("select create_log_partitions(2)"));
  await pool.query(`drop table booking_events_${month.toISOString().slice(0, 7).replace("-", "_")}`);
  // The last days of the month before may be covered for long enough.
  const { database, needsAttention } = await readJson(
    {},
    new Date(Math.max(now.getTime(), month.getTime() - 86_400_000)),
  );
  expect(database).toMatchObject({ data: { partitionsUntil: ahead === 0 ? null : month.toISOString() } });
  expect(needsAttention).toContainEqual(expect.stringMatching(/^The log lacks partitions of this month or the next/));
  expect((await pool.query("select max(ends) > $1 as more from log_partitions()", [monthAfter])).rows).toEqual([
    { more: true },
  ]);
});

test("a database that takes no writes needs attention", async () => {
  const database = new URL(url).pathname.slice(1);
  await pool.query(`alter database ${database} set default_transaction_read_only = on`);
  cleanups.push(() =>
    pool.query(`set transaction read write; alter database ${database} reset default_transaction_read_only`),
  );
  expect((await readJson()).needsAttention).toContainEqual(
    expect.stringMatching(/^PostgreSQL takes no writes, since default_transaction_read_only is on/),
  );
});

test("missing migrations need attention", async () => {
  const { rows } = await pool.query(
    "delete from schema_migrations where name = (select max(name) from schema_migrations) returning name, digest",
  );
  const { name, digest } = rows[0];
  cleanups.push(() =>
    pool.query("insert into schema_migrations (name, digest, allows_older) values ($1, $2, false)", [name, digest]),
  );
  expect((await readJson()).needsAttention).toContain(`Migrations are missing, from ${name} on. Run: ops migrate`);
});

/** Accepts connections, and never answers. */
async function startFrozenServer(): Promise<string> {
  const server: Server = createServer(() => {});
  cleanups.push(() => server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("without Redis, nobody knows when a partner was last heard of, so no time is shown and none is silent", async () => {
  await logEvents("acme", everyTenMinutes(180, 48 * 60));
  const environment = { REDIS_URL: `redis://127.0.0.1:${await freePort()}` };
  expect(await readJson(environment)).toMatchObject({
    lastHeardOf: { acme: null },
    needsAttention: [expect.stringContaining("Redis at 127.0.0.1")],
  });
  expect((await status([], environment)).stdout).toMatch(/^acme .* unknown$/m);
});

test.each([
  ["does not run", async () => `127.0.0.1:${await freePort()}`],
  ["is frozen", startFrozenServer],
])("the rest is shown if Redis or PostgreSQL %s", async (_, startServer) => {
  const host = await startServer();
  const withoutRedis = await readJson({ REDIS_URL: `redis://:canary@${host}` });
  expect(withoutRedis).toMatchObject({
    exitCode: 1,
    needsAttention: [expect.stringContaining(`Redis at ${host} does not answer`)],
    queue: { problem: expect.any(String) },
    database: { data: { deadLetters: [] } },
  });
  const withoutPostgres = await readJson({ DATABASE_URL: `postgres://user:canary@${host}/any` });
  expect(withoutPostgres.needsAttention).toContainEqual(
    expect.stringContaining(`PostgreSQL at ${host} can't be reached`),
  );
  expect(withoutPostgres).toMatchObject({ exitCode: 1, queue: { counts: { waiting: 0 } } });
  expect(JSON.stringify([withoutRedis, withoutPostgres])).not.toContain("canary");
});

test.each([
  ["tells by its exit code that something needs attention", [], 1],
  ["ends with success if it would go on forever", ["--watch"], 0],
])("without a reader it %s", { timeout: 60_000 }, async (_what, args, exitCode) => {
  const environment = { REDIS_URL: "redis://127.0.0.1:1", DATABASE_URL: url, PARTNERS_FILE: "/nowhere/partners.json" };
  expect(await spawnUnreadOps(["status", ...args], environment)).toBe(exitCode);
});

test("the memory of Redis needs attention beyond the share at which ingest refuses events", async () => {
  const dir = await mkdtemp(join(tmpdir(), "booking-events-status-"));
  cleanups.push(() => rm(dir, { recursive: true }));
  const server = await startRedis({ dir });
  cleanups.push(() => server.stop());
  const admin = new Redis(server.url);
  cleanups.push(() => admin.disconnect());
  const used = Number(/^used_memory:(\d+)/m.exec(await admin.info("memory"))?.[1]);
  await admin.config("SET", "maxmemory", String(2 * used));
  const concern = expect.stringMatching(/^Redis uses \d\d % of its maxmemory/);
  const environment = { REDIS_URL: server.url };
  expect((await readJson(environment)).needsAttention).not.toContainEqual(concern);
  const early = await readJson({ ...environment, REDIS_MEMORY_HIGH_WATER: "0.2" });
  expect(early.needsAttention).toContainEqual(concern);
});

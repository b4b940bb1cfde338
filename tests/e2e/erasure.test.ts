import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { fetchAsPartner } from "@booking-events/harness/fetch-as-partner";
import { type Ran, runOps } from "@booking-events/ops/testing/run-ops";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findLeaks } from "./find-leaks.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-erasure-tests-0123456789";
/** The guest. Processes that print one of these values fail the test: see `runApp`. */
const guest = {
  email: "ada.canary7q@example.com",
  phone: "+44 20 7946 0958 canary7q",
  name: "Adaë Canary7q",
  address: "7 Canary7q Row, Löndon",
  reference: "TRIP-CANARY7Q",
  key: "key-of-ada.canary7q@example.com",
};
const reason = ["--reason", "request 4711"];
/** Without compression, a search of the bytes finds what is there. */
const redisSettings = { rdbcompression: "no" };
const walSegmentBytes = 16 * 1_024 * 1_024;
const maxWalBytes = 48 * 1_024 * 1_024;

const own = useOwnServices(secret, {
  // As in production: see docs/privacy.md.
  log_error_verbosity: "terse",
  wal_compression: "off",
  default_toast_compression: "pglz",
  min_wal_size: "32MB",
  max_wal_size: String(maxWalBytes / 1_024 / 1_024),
});
let redis: Redis;
beforeAll(async () => {
  redis = new Redis(own.redis.url);
  for (const [name, value] of Object.entries(redisSettings)) await redis.config("SET", name, value);
});
afterAll(() => redis?.disconnect());

interface Sent {
  kind?: string;
  reference?: string;
  fields?: Record<string, string>;
  isForm?: boolean;
  key?: string;
  status?: number;
}

async function post(ingest: RunningApp, sent: Sent = {}): Promise<string> {
  const { kind = "create", reference = guest.reference, fields = {}, isForm = false, key, status = 200 } = sent;
  const payload = {
    consumerTripPartnerExternalReference: reference,
    consumerEmail: guest.email,
    consumerPhone: guest.phone,
    consumerGivenName: guest.name,
    consumerTripAccommodationAddress: guest.address,
    ...fields,
  };
  const response = await fetchAsPartner(`${ingest.url}/booking-event/${kind}/${secret}`, {
    method: "POST",
    headers: {
      "Content-Type": isForm ? "application/x-www-form-urlencoded" : "application/json",
      ...(key === undefined ? {} : { "Idempotency-Key": key }),
    },
    body: isForm ? new URLSearchParams(payload) : JSON.stringify(payload),
  });
  expect(response.status).toBe(status);
  return ((await response.json()) as { eventId: string }).eventId;
}

function ops(...args: string[]): Promise<Ran> {
  return runOps(args, { environment: own.environment });
}

async function outcomesOf(...ids: string[]): Promise<string[]> {
  const { rows } = await own.pool.query("select outcome from booking_events where id = any($1) order by sequence", [
    ids,
  ]);
  return rows.map(({ outcome }) => outcome);
}

async function countLetters(): Promise<number> {
  return (await own.pool.query("select from dead_letters")).rowCount ?? 0;
}

/** An operator's mistake: PostgreSQL refuses the content of some events. */
const breakDatabase = () =>
  own.pool.query(
    `alter table bookings add constraint mistake
     check (payload ->> 'note' is distinct from 'poison' or 1 / (0 * length(reference)) = 0)`,
  );
const repairDatabase = () => own.pool.query("alter table bookings drop constraint mistake");

/** The values of the guest that a text contains, in any common encoding. */
function findGuest(text: string): string[] {
  const escaped = Object.entries(guest).map(([name, value]) => [`${name}, escaped`, escapeAsJson(value)]);
  return findLeaks(text, { ...guest, ...Object.fromEntries(escaped) });
}

function escapeAsJson(text: string): string {
  return text.replace(/[^ -~]/g, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/**
 * Searches every byte of every file.
 *
 * @returns what was found, by the file's path
 */
async function searchFiles(folder: string, isSearched: (path: string) => boolean = () => true) {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const found: Record<string, string[]> = {};
  for (const path of paths.filter(isSearched)) {
    // A file may disappear meanwhile.
    const names = findGuest((await readFile(path).catch(() => Buffer.alloc(0))).toString());
    if (names.length > 0) found[path.slice(folder.length + 1)] = names;
  }
  return found;
}

const isWal = (path: string) => path.includes("/pg_wal/");
const searchRedis = () => searchFiles(join(own.folder, "redis"));
const searchPostgres = async () => ({
  ...(await searchFiles(own.postgres.home, (path) => !isWal(path))),
  ...(await searchFiles(join(own.folder, "postgres"), (path) => !isWal(path))),
});
const searchWal = () => searchFiles(own.postgres.home, isWal);

/** Far in the future, as an event that has failed often waits. */
async function delay(eventId: string): Promise<void> {
  const key = (name: string) => `{booking-events}:events:${name}`;
  await redis.zadd(key("delayed"), (Date.now() + 86_400_000) * 0x1000, eventId);
  await redis.lrem(key("wait"), 1, eventId);
}

test("nothing of an erased guest is left in any file, and nothing brings it back", async () => {
  const [ingest, worker] = await Promise.all([own.start("ingest"), own.start("worker")]);
  await sendEverything(ingest);
  expect(await worker.stop("SIGTERM")).toBe(0);
  const delayed = await post(ingest, { reference: "CANARY7Q-DELAYED" });
  await delay(delayed);
  const { holder, held } = await startHolder(ingest);
  const waiting = await post(ingest, { kind: "update", fields: { note: "waits" } });
  await own.pool.query("analyze");
  await own.pool.query("checkpoint");
  for (const found of [await searchRedis(), await searchPostgres(), await searchWal()])
    expect(new Set(Object.values(found).flat())).toEqual(
      expect.toSatisfy((names: Set<string>) => Object.keys(guest).every((name) => names.has(name))),
    );

  const erased = await ops("guests", "erase", "--email", guest.email, ...reason, "--yes");
  expect(erased).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/and 2 events in the queue/) });
  expect(erased.stderr).toContain("Workers hold 1 more");
  expect(await outcomesOf(delayed, waiting, held)).toEqual(["erased", "erased", "erased"]);

  await holder.stop("SIGKILL");
  const next = await own.start("worker");
  const late = [
    await post(ingest, { key: guest.key }),
    await post(ingest, { isForm: true }),
    await post(ingest, { kind: "delete" }),
  ];
  await waitFor(async () => expect(await outcomesOf(...late)).toEqual(["erased", "erased", "erased"]), {
    timeoutMs: 20_000,
  });
  const { rows: letters } = await own.pool.query("select event_id from dead_letters");
  const replays = await ops("dead-letters", "replay", ...letters.map(({ event_id }) => event_id), "--yes");
  expect(replays.stdout.match(/resolved +(erased|replayed)/g)).toHaveLength(letters.length);
  await waitFor(async () => expect(await redis.keys("{booking-events}:events:????????-*")).toEqual([]), {
    timeoutMs: 30_000,
  });
  const { rows } = await own.pool.query("select reference from bookings where erased_at is null");
  expect(rows).toEqual([{ reference: "OTHER" }]);

  const again = await ops("guests", "erase", "--email", guest.email, ...reason, "--yes", "--rewrite");
  expect(again).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(/No bookings[\s\S]*rewritten its tables/) });
  await own.pool.query("checkpoint");
  expect(await searchRedis()).toEqual({});
  expect(await searchPostgres()).toEqual({});
  for (const app of [ingest, worker, next]) expect(findGuest(app.output())).toEqual([]);
  for (const app of [ingest, next]) expect(findGuest(await app.metrics())).toEqual([]);
  const audits = await own.pool.query("select * from erasures");
  expect(findGuest(JSON.stringify(audits.rows))).toEqual([]);

  await overwriteWal();
});

test("a worker with another key than the database's stops, and says why", async () => {
  const environment = { DIGEST_KEY: "another key, of 32 characters at least" };
  const worker = await own.start("worker", { environment, isReady: false });
  expect(await worker.exited).toBe(1);
  expect(worker.logLines()).toContainEqual(
    expect.objectContaining({ err: expect.objectContaining({ message: expect.stringMatching(/^DIGEST_KEY is not/) }) }),
  );
});

/** Through every path, so that each place that can hold something of a guest does. */
async function sendEverything(ingest: RunningApp): Promise<void> {
  await post(ingest, { reference: "OTHER", fields: { ...otherGuest } });
  const applied = [
    await post(ingest, { key: guest.key }),
    await post(ingest, { key: guest.key }),
    await post(ingest, { kind: "update", isForm: true, fields: { note: "a form" } }),
    await post(ingest, { kind: "update", fields: { note: incompressible() } }),
    await post(ingest, { kind: "update", fields: { consumerEmail: "another@example.com" } }),
  ];
  await post(ingest, { fields: { consumerTripArrivalDate: guest.name }, status: 422 });
  await postMalformed(ingest);
  await waitFor(async () =>
    expect(await outcomesOf(...applied)).toEqual(["created", "duplicate", "updated", "updated", "updated"]),
  );
  await breakDatabase();
  for (const reference of ["CANARY7Q-REPLAYED", "CANARY7Q-DEAD"])
    await post(ingest, { reference, fields: { note: "poison" } });
  await waitFor(async () => expect(await countLetters()).toBe(2), { timeoutMs: 20_000 });
  const { rows } = await own.pool.query("select event_id from dead_letters where reference = 'CANARY7Q-REPLAYED'");
  await repairDatabase();
  expect(await ops("dead-letters", "replay", rows[0].event_id, "--yes")).toMatchObject({ exitCode: 0 });
  await leaveUnreadable();
  await waitFor(async () => expect(await countLetters()).toBe(3), { timeoutMs: 20_000 });
}

const otherGuest = {
  consumerEmail: "bob@example.com",
  consumerPhone: "+44 20 7946 0000",
  consumerGivenName: "Bob",
  consumerTripAccommodationAddress: "1 Other Row",
};

/** Longer than a page of PostgreSQL can hold in a row, and not to be compressed, which would hide what it contains. */
function incompressible(): string {
  return Array.from({ length: 30 }, () => `${guest.name} ${crypto.randomUUID()}${crypto.randomUUID()}`)
    .join(" ")
    .slice(0, 1_000);
}

async function postMalformed(ingest: RunningApp): Promise<void> {
  const response = await fetchAsPartner(`${ingest.url}/booking-event/create/${secret}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: `{"consumerEmail": "${guest.email}", `,
  });
  expect(response.status).toBe(400);
}

/** A job that no worker can read becomes a dead letter without a reference. */
async function leaveUnreadable(): Promise<void> {
  const jobId = "0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e";
  const options = JSON.stringify({ attempts: 15, removeOnComplete: true });
  const job = ["name", "create", "data", `{"email": "${guest.email}"`, "opts", options, "timestamp", "1"];
  await redis.hset(`{booking-events}:events:${jobId}`, ...job, "delay", "0", "priority", "0");
  await redis.lpush("{booking-events}:events:wait", jobId);
  await redis.zadd("{booking-events}:events:marker", 0, "0");
}

/** A worker that has taken an event, and waits before its transaction. */
async function startHolder(ingest: RunningApp): Promise<{ holder: RunningApp; held: string }> {
  const held = await post(ingest, { reference: "CANARY7Q-HELD" });
  const holder = await own.start("worker", {
    entry: "tests/e2e/pausing-worker.ts",
    environment: { PAUSE_AT: "before-transaction", CONCURRENCY: "1" },
  });
  await waitFor(() => expect(holder.output()).toContain("paused before-transaction"));
  return { holder, held };
}

/** After at most `max_wal_size` of further changes, no file of the WAL holds anything of the guest. */
async function overwriteWal(): Promise<void> {
  const segments = maxWalBytes / walSegmentBytes;
  for (let segment = 0; segment <= segments; segment += 1) {
    await own.pool.query("select pg_logical_emit_message(false, 'test', 'a change')");
    await execute(own.postgres.url, "select pg_switch_wal()");
    await execute(own.postgres.url, "checkpoint");
  }
  expect(await searchWal()).toEqual({});
}

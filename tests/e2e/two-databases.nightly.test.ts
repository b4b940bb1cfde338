import { uniquePrefix, waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { runOps } from "@booking-events/ops/testing/run-ops";
import { createPool, migrate } from "@booking-events/store";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";
import { postAccepted } from "./post-event.ts";
import { type RunningApp, useOwnServices } from "./surroundings.ts";

const secret = "a-secret-of-the-two-databases-tests-0123";
const own = useOwnServices(secret);
const patiently = { timeoutMs: 30_000 };
let number = 0;
let databases: string[];
const pools: ReturnType<typeof createPool>[] = [];

/** Each test has two databases of one server, and one queue. */
beforeEach(async () => {
  number += 1;
  own.environment["QUEUE_PREFIX"] = uniquePrefix();
  databases = [`one_${number}`, `two_${number}`];
  for (const name of databases) await execute(own.postgres.url, `create database ${name}`);
});

afterEach(() => Promise.all(pools.splice(0).map((pool) => pool.end())));

const urlOf = (name: string) => Object.assign(new URL(own.postgres.url), { pathname: `/${name}` }).href;
const using = (name: string, more = {}) => ({ ...own.environment, DATABASE_URL: urlOf(name), ...more });

/** Not ready for a reason that is no matter of these tests: see `runApp`. */
async function problemsOf(app: RunningApp): Promise<string[]> {
  const { problems = [] } = (await app.readiness()).body;
  return problems.filter((problem) => !problem.startsWith("PostgreSQL may lose"));
}

function startWorker(name: string, more = {}): Promise<RunningApp> {
  return own.start("worker", { environment: using(name, more), isReady: false });
}

function openPool(name: string): ReturnType<typeof createPool> {
  const pool = createPool({ databaseUrl: urlOf(name), applicationName: "test", maxConnections: 1, onError: () => {} });
  pools.push(pool);
  return pool;
}

async function idOf(name: string): Promise<string> {
  return (await openPool(name).query<{ id: string }>("select id from database_id")).rows[0]?.id ?? "";
}

async function countApplied(name: string): Promise<number> {
  const { rows } = await openPool(name).query<{ count: number }>("select count(*)::int from booking_events");
  return rows[0]?.count ?? 0;
}

async function post(ingest: RunningApp, count: number): Promise<string[]> {
  const ids: string[] = [];
  for (let index = 0; index < count; index += 1)
    ids.push(await postAccepted(ingest, { secret, reference: `TRIP-${number}-${index}` }));
  return ids;
}

test("of two environments that start at once, one gets all events; everything of the other refuses and says why", async () => {
  const [ingest, ...workers] = await Promise.all([own.start("ingest"), ...databases.map((name) => startWorker(name))]);
  await waitFor(async () => {
    const ready = await Promise.all(workers.map(async (worker) => (await problemsOf(worker)).length === 0));
    expect(ready.toSorted()).toEqual([false, true]);
    const logged = workers.filter((worker) =>
      worker.logLines().some(({ msg }) => String(msg).includes("queue attach")),
    );
    expect(logged).toHaveLength(1);
  }, patiently);
  const isFirst = (await problemsOf(workers[0] as RunningApp)).length === 0;
  const [right = "", wrong = ""] = isFirst ? databases : databases.toReversed();
  const [taking, refusing] = (isFirst ? workers : workers.toReversed()) as [RunningApp, RunningApp];
  const [eventId = ""] = await post(ingest, 20);
  await waitFor(async () => expect(await countApplied(right)).toBe(20), patiently);

  const [rightId, wrongId] = [await idOf(right), await idOf(wrong)];
  const sentence = new RegExp(`${rightId}.*${wrongId}.*ops queue attach$`);
  expect(await problemsOf(refusing)).toEqual([expect.stringMatching(sentence)]);
  const lookup = await own.start("lookup", { environment: using(wrong), isReady: false });
  const ask = async () => (await fetch(`${lookup.url}/booking-event/receipt/${secret}/${eventId}`)).status;
  await waitFor(async () => expect(await problemsOf(lookup)).toEqual([expect.stringMatching(sentence)]), patiently);
  expect(await ask()).toBe(503);

  const ofWrong = (...args: string[]) => runOps(args, { environment: using(wrong) });
  const status = JSON.parse((await ofWrong("status", "--json")).stdout) as { needsAttention: string[] };
  expect(status.needsAttention).toContainEqual(expect.stringMatching(sentence));
  const checks = JSON.parse((await ofWrong("doctor", "--json")).stdout) as { name: string; state: string }[];
  expect(checks.filter(({ name }) => name === "The queue feeds this database")).toMatchObject([{ state: "problem" }]);
  const erasing = ["guests", "erase", "--partner", "acme", "--reference", "TRIP", "--reason", "test", "--yes"];
  expect(await ofWrong(...erasing)).toMatchObject({ exitCode: 1, stderr: expect.stringContaining(wrongId) });

  const unconfirmed = await ofWrong("queue", "attach");
  expect(unconfirmed).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Add --yes") });
  expect(await problemsOf(taking)).toEqual([]);
  const moved = await ofWrong("queue", "attach", "--yes");
  expect(moved).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(`feeds the database ${wrongId}`) });
  await waitFor(async () => {
    expect(await problemsOf(refusing)).toEqual([]);
    expect(await problemsOf(taking)).toEqual([expect.stringMatching(`${wrongId}.*another one, ${rightId}`)]);
    expect(await problemsOf(lookup)).toEqual([]);
  }, patiently);
  await post(ingest, 5);
  await waitFor(async () => expect(await countApplied(wrong)).toBe(5), patiently);
  expect(await countApplied(right)).toBe(20);
  expect(await ask()).toBe(404);
}, 120_000);

test("after Redis has lost its data, the database that it fed is recorded again, though another one's worker runs", async () => {
  const [name = "", other = ""] = databases;
  const [ingest, worker] = await Promise.all([own.start("ingest"), startWorker(name)]);
  await waitFor(async () => expect(await problemsOf(worker)).toEqual([]), patiently);
  const refused = await startWorker(other);
  await waitFor(async () => expect(await problemsOf(refused)).toEqual([expect.stringContaining("has fed")]), patiently);
  const redis = new Redis(own.redis.url);
  for (let round = 1; round <= 3; round += 1) {
    await redis.flushall();
    await post(ingest, 5);
    await waitFor(async () => expect(await countApplied(name)).toBe(5 * round), patiently);
  }
  redis.disconnect();
  expect(await problemsOf(refused)).toEqual([expect.stringContaining("has fed")]);
  expect(await countApplied(other)).toBe(0);
}, 120_000);

test("an empty database in the place of the right one gets no event, beneath a running worker or a new one", async () => {
  const [name = "", lost = ""] = [databases[0], `lost_${number}`];
  const ingest = await own.start("ingest");
  await post(ingest, 3);
  // Events that merely wait make no history: a new installation needs no further step.
  const worker = await startWorker(name);
  await waitFor(async () => expect(await countApplied(name)).toBe(3), patiently);
  const id = await idOf(name);
  await Promise.all(pools.splice(0).map((pool) => pool.end()));
  /** As a server that is started with another volume. */
  const rename = async (from: string, to: string) => {
    await execute(own.postgres.url, `alter database ${from} allow_connections false`);
    await execute(own.postgres.url, `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${from}'`);
    await execute(own.postgres.url, `alter database ${from} rename to ${to}`);
    await execute(own.postgres.url, `alter database ${to} allow_connections true`);
  };
  await rename(name, lost);
  await execute(own.postgres.url, `create database ${name}`);
  await migrate(urlOf(name));
  await post(ingest, 3);
  const [second, newId] = [await startWorker(name), await idOf(name)];
  await waitFor(async () => {
    expect(await problemsOf(worker)).toEqual([expect.stringMatching(`${id}.*now has ${newId}`)]);
    expect(await problemsOf(second)).toEqual([expect.stringMatching(`${id}.*an empty one, ${newId}`)]);
  }, patiently);
  expect(await countApplied(name)).toBe(0);
  expect(await second.stop()).toBe(0);
  await Promise.all(pools.splice(0).map((pool) => pool.end()));

  await rename(name, `empty_${number}`);
  await rename(lost, name);
  await waitFor(async () => expect(await countApplied(name)).toBe(6), patiently);
  await waitFor(async () => expect(await problemsOf(worker)).toEqual([]), patiently);
  expect(worker.logLines().filter(({ msg }) => msg === "attempt failed")).toEqual([]);
}, 120_000);

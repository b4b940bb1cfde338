import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import { appendChanges, createPool, insertSubscription, inTransaction } from "@booking-events/store";
import { createSigningKey } from "@booking-events/subscribers";
import type { Pool } from "pg";
import { type PostCounter, startPostCounter } from "../count-posts.ts";
import { cpuTimeUs } from "../cpu-time.ts";
import { fillFeed } from "../fill-feed.ts";
import { baseline, type ProcessUnderTest, startUnderTest } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";
import { toLatency } from "../statistics.ts";

const pollMs = 20;
/** The pauses of posts one by one, so that each finds an idle process. */
const pauseMs = 50;

/** Of each subscription, where there are many: enough that its start does not decide. */
const postsOfEach = 100;

export const deliver: Scenario = {
  name: "deliver",
  about: "changes posted to subscribers by one process, beside a program that posts one after the other",
  async run(bench) {
    const size = (full: number) => (bench.isSmoke ? full / 100 : full);
    return [
      await compareThroughput(bench, size(20_000)),
      await compareOutages(bench, size(100_000)),
      await measureDelay(bench),
      await measureIdleness(bench, size(1_000)),
    ];
  },
};

async function compareThroughput(bench: Bench, changes: number): Promise<Section> {
  const title = `deliver, ${changes.toLocaleString("en")} posts`;
  const bookings = changes / 10;
  const to = (subscriptions: number) => () =>
    measurePosts(bench, { changes: changes / subscriptions, bookings: bookings / subscriptions, subscriptions });
  const many = bench.isSmoke ? 20 : 1_000;
  const nameOfMany = `${many} subscriptions, ${postsOfEach} posts each`;
  const measurements = await runRounds(bench, title, {
    "one by one": () => measurePosts(bench, { changes, bookings, subscriptions: 0 }),
    "1 subscription": to(1),
    "10 subscriptions": to(10),
    [nameOfMany]: () => measurePosts(bench, { changes: postsOfEach, bookings: postsOfEach / 10, subscriptions: many }),
    "one booking fails": () => measurePosts(bench, { changes, bookings, subscriptions: 1, refuses: "TRIP-7" }),
  });
  return {
    title,
    measurements,
    comparisons: [
      { figure: "eventsPerSecond", of: "1 subscription", to: "one by one" },
      { figure: "cpuUs", of: "1 subscription", to: "one by one" },
      { figure: "eventsPerSecond", of: "10 subscriptions", to: "1 subscription" },
      { figure: "eventsPerSecond", of: nameOfMany, to: "1 subscription" },
      { figure: "eventsPerSecond", of: "one booking fails", to: "1 subscription" },
    ],
  };
}

/** Bookings a second, in `latest`: how often each of them has changed makes little difference. */
async function compareOutages(bench: Bench, bookings: number): Promise<Section> {
  const title = `deliver, after an outage, the latest of ${bookings.toLocaleString("en")} bookings`;
  const after = (changes: number) => () =>
    measurePosts(bench, { changes, bookings, subscriptions: 1, mode: "latest" as const });
  const measurements = await runRounds({ ...bench, rounds: 1 }, title, {
    "1 change of each": after(bookings),
    "10 changes of each": after(10 * bookings),
  });
  return {
    title,
    measurements,
    comparisons: [{ figure: "eventsPerSecond", of: "10 changes of each", to: "1 change of each" }],
  };
}

interface Workload {
  changes: number;
  bookings: number;
  /** 0: the program that posts one by one. */
  subscriptions: number;
  mode?: "latest" | "every";
  /** Whether subscriptions begin with the first change, or after it. Default: with it. */
  from?: 0 | 1;
  refuses?: string;
}

/** From the start of the process to the last post. */
function measurePosts(bench: Bench, workload: Workload): Promise<Measurement> {
  const { changes, bookings, subscriptions, mode, refuses } = workload;
  return whileDelivering(bench, workload, async ({ counter, process }) => {
    const postsOfOne = mode === "latest" ? bookings : changes - (refuses === undefined ? 0 : changes / bookings);
    const wanted = postsOfOne * Math.max(subscriptions, 1);
    const startedAtMs = performance.now();
    const cpuSince = watchCpu(bench, process);
    const beforeCount = counter.accepted;
    while (counter.accepted < wanted) await sleep(pollMs, undefined, { signal: bench.signal });
    const measured = wanted - beforeCount;
    const cpu = cpuSince(measured);
    // Any more would be posts that were made twice.
    await sleep(200);
    if (counter.accepted !== wanted) throw new IntegrityError(`${wanted} posts were due, ${counter.accepted} came.`);
    return { eventsPerSecond: (measured * 1_000) / (counter.lastAtMs - startedAtMs), ...cpu };
  });
}

const idle = { changes: 1, bookings: 1, mode: "latest", from: 1 } as const;

/** From before the transaction that changes a booking to the end of the post. */
async function measureDelay(bench: Bench): Promise<Section> {
  const title = "deliver, from the commit to the post, idle before";
  const measurements = await runRounds(bench, title, {
    "1 subscription": () =>
      whileDelivering(bench, { ...idle, subscriptions: 1 }, async ({ pool, counter }) => {
        await changeOneByOne(bench, pool, counter, bench.warmUpMs);
        return toLatency(await changeOneByOne(bench, pool, counter, bench.measureMs));
      }),
  });
  return { title, measurements, comparisons: [] };
}

async function changeOneByOne(bench: Bench, pool: Pool, counter: PostCounter, durationMs: number) {
  const timesMs: number[] = [];
  for (const endAtMs = performance.now() + durationMs; performance.now() < endAtMs; ) {
    bench.signal.throwIfAborted();
    const posted = new Promise<number>((resolve) => {
      counter.onAccepted = () => resolve(performance.now());
    });
    await inTransaction(pool, (client) => appendChanges(client, [newChange()]));
    const committedAtMs = performance.now();
    timesMs.push((await posted) - committedAtMs);
    await sleep(pauseMs);
  }
  return timesMs;
}

function newChange() {
  return {
    partner: "acme",
    referenceKind: "trip",
    reference: randomUUID(),
    bookingId: randomUUID(),
    revision: 1,
    change: "created",
    eventId: randomUUID(),
    sequence: 1,
    previousEventId: null,
  } as const;
}

/** CPU time of a second in which nothing happens, and not of an event. */
async function measureIdleness(bench: Bench, many: number): Promise<Section> {
  const title = "deliver, a second without changes";
  const measure = (subscriptions: number) => () =>
    whileDelivering(bench, { ...idle, subscriptions }, async ({ process }) => {
      await sleep(bench.warmUpMs, undefined, { signal: bench.signal });
      const cpuSince = watchCpu(bench, process);
      await sleep(bench.measureMs, undefined, { signal: bench.signal });
      return cpuSince(bench.measureMs / 1_000);
    });
  const measurements = await runRounds(bench, title, {
    "1 subscription": measure(1),
    [`${many} subscriptions`]: measure(many),
  });
  return { title, measurements, comparisons: [] };
}

interface Delivering {
  pool: Pool;
  counter: PostCounter;
  process: ProcessUnderTest;
}

/** Works while a process delivers what a new database has. */
function whileDelivering(
  bench: Bench,
  workload: Workload,
  work: (delivering: Delivering) => Promise<Measurement>,
): Promise<Measurement> {
  const { changes, bookings, subscriptions, refuses } = workload;
  return bench.services.withDatabase(async (database) => {
    await using started = new AsyncDisposableStack();
    await fillFeed(database, { changes, bookings });
    const counter = await startPostCounter(refuses === undefined ? {} : { refuses });
    started.defer(counter.stop);
    const pool = createPool({ databaseUrl: database.url, applicationName: "bench", maxConnections: 1, onError() {} });
    started.defer(() => pool.end());
    await subscribe(pool, counter, workload);
    const program = subscriptions === 0 ? baseline("post-one-by-one") : builtApps.webhooks;
    const process = await startUnderTest(bench, program, {
      DATABASE_URL: database.url,
      SUBSCRIBER_URL: counter.url,
      WEBHOOKS_ALLOW_PRIVATE: "true",
      LOG_LEVEL: "warn",
    });
    started.defer(async () => void (await process.stop()));
    // All of it runs until this is done.
    return await work({ pool, counter, process });
  });
}

async function subscribe(
  pool: Pool,
  { url }: PostCounter,
  { subscriptions, mode = "every", from = 0 }: Workload,
): Promise<void> {
  for (let number = 0; number < subscriptions; number += 1) {
    await insertSubscription(pool, {
      name: `s${number}`,
      url,
      mode,
      payload: "thin",
      createdBy: "bench",
      partners: null,
      changes: null,
      countries: null,
      arrivalFromDays: null,
      arrivalToDays: null,
      signature: "hmac",
      signingKey: createSigningKey("hmac"),
      tokenSha256: null,
    });
  }
  await pool.query("update subscriptions set from_id = $1", [from]);
}

/** @returns a function that returns the CPU time since then, divided by the number of what was done */
function watchCpu({ services }: Bench, process: ProcessUnderTest) {
  const read = () => ({ own: process.cpuUs(), postgres: cpuTimeUs(services.postgresPid) ?? Number.NaN });
  const before = read();
  return (count: number) => {
    const { own, postgres } = read();
    return { cpuUs: (own - before.own) / count, postgresCpuUs: (postgres - before.postgres) / count };
  };
}

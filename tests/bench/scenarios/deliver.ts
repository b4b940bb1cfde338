import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import { appendChanges, createPool, insertSubscription, inTransaction } from "@booking-events/store";
import { createSigningKey } from "@booking-events/subscribers";
import { type PostCounter, startPostCounter } from "../count-posts.ts";
import { cpuTimeUs } from "../cpu-time.ts";
import type { BenchDatabase } from "../data-services.ts";
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
  refuses?: string;
}

/** From the start of the process to the last post. */
function measurePosts(bench: Bench, { changes, bookings, subscriptions, mode = "every", refuses }: Workload) {
  return bench.services.withDatabase(async (database): Promise<Measurement> => {
    await fillFeed(database, { changes, bookings });
    return withCounter(refuses === undefined ? {} : { refuses }, async (counter) => {
      await subscribe(database, counter, { count: subscriptions, mode, from: 0 });
      const process = await start(bench, database, { isOneByOne: subscriptions === 0, url: counter.url });
      try {
        const postsOfOne = mode === "latest" ? bookings : changes - (refuses === undefined ? 0 : changes / bookings);
        const wanted = postsOfOne * Math.max(subscriptions, 1);
        const startedAtMs = performance.now();
        const before = readCpu(bench, process);
        const beforeCount = counter.accepted;
        while (counter.accepted < wanted) await sleep(pollMs, undefined, { signal: bench.signal });
        const cpu = readCpu(bench, process).map((time, index) => time - (before[index] ?? 0));
        const measured = wanted - beforeCount;
        // Any more would be posts that were made twice.
        await sleep(200);
        if (counter.accepted !== wanted)
          throw new IntegrityError(`${wanted} posts were due, ${counter.accepted} came.`);
        const [cpuUs = Number.NaN, postgresCpuUs = Number.NaN] = cpu.map((time) => time / measured);
        return { eventsPerSecond: (measured * 1_000) / (counter.lastAtMs - startedAtMs), cpuUs, postgresCpuUs };
      } finally {
        await process.stop();
      }
    });
  });
}

/** From before the transaction that changes a booking to the end of the post. */
async function measureDelay(bench: Bench): Promise<Section> {
  const title = "deliver, from the commit to the post, idle before";
  const measurements = await runRounds(bench, title, {
    "1 subscription": () =>
      bench.services.withDatabase(async (database) => {
        await fillFeed(database, { changes: 1, bookings: 1 });
        return withCounter({}, async (counter) => {
          await subscribe(database, counter, { count: 1, mode: "latest", from: 1 });
          const process = await start(bench, database, { isOneByOne: false, url: counter.url });
          try {
            await changeOneByOne(bench, database, counter, bench.warmUpMs);
            return toLatency(await changeOneByOne(bench, database, counter, bench.measureMs));
          } finally {
            await process.stop();
          }
        });
      }),
  });
  return { title, measurements, comparisons: [] };
}

async function changeOneByOne(bench: Bench, database: BenchDatabase, counter: PostCounter, durationMs: number) {
  const pool = createPool({
    databaseUrl: database.url,
    applicationName: "bench",
    maxConnections: 1,
    onError: () => {},
  });
  const timesMs: number[] = [];
  try {
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
  } finally {
    await pool.end();
  }
  return timesMs;
}

function newChange() {
  const identity = {
    partner: "acme",
    referenceKind: "trip",
    reference: randomUUID(),
    bookingId: randomUUID(),
  } as const;
  return {
    ...identity,
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
  const idle = (count: number) => () =>
    bench.services.withDatabase(async (database): Promise<Measurement> => {
      await fillFeed(database, { changes: 1, bookings: 1 });
      return withCounter({}, async (counter) => {
        await subscribe(database, counter, { count, mode: "latest", from: 1 });
        const process = await start(bench, database, { isOneByOne: false, url: counter.url });
        try {
          await sleep(bench.warmUpMs, undefined, { signal: bench.signal });
          const before = readCpu(bench, process);
          await sleep(bench.measureMs, undefined, { signal: bench.signal });
          const [cpuUs = Number.NaN, postgresCpuUs = Number.NaN] = readCpu(bench, process).map(
            (time, index) => ((time - (before[index] ?? 0)) * 1_000) / bench.measureMs,
          );
          return { cpuUs, postgresCpuUs };
        } finally {
          await process.stop();
        }
      });
    });
  const measurements = await runRounds(bench, title, {
    "1 subscription": idle(1),
    [`${many} subscriptions`]: idle(many),
  });
  return { title, measurements, comparisons: [] };
}

async function withCounter<Result>(
  options: { refuses?: string },
  work: (counter: PostCounter) => Promise<Result>,
): Promise<Result> {
  const counter = await startPostCounter(options);
  try {
    return await work(counter);
  } finally {
    await counter.stop();
  }
}

async function subscribe(
  database: BenchDatabase,
  { url }: PostCounter,
  { count, mode, from }: { count: number; mode: "latest" | "every"; from: number },
): Promise<void> {
  const pool = createPool({
    databaseUrl: database.url,
    applicationName: "bench",
    maxConnections: 1,
    onError: () => {},
  });
  const all = { partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null };
  for (let number = 0; number < count; number += 1) {
    const signing = { signature: "hmac", signingKey: createSigningKey("hmac"), tokenSha256: null } as const;
    const subscription = {
      name: `s${number}`,
      url,
      mode,
      payload: "thin",
      createdBy: "bench",
      ...all,
      ...signing,
    } as const;
    await insertSubscription(pool, subscription);
  }
  await pool.query("update subscriptions set from_id = $1", [from]);
  await pool.end();
}

function start(
  bench: Bench,
  database: BenchDatabase,
  { isOneByOne, url }: { isOneByOne: boolean; url: string },
): Promise<ProcessUnderTest> {
  return startUnderTest(bench, isOneByOne ? baseline("post-one-by-one") : builtApps.webhooks, {
    DATABASE_URL: database.url,
    SUBSCRIBER_URL: url,
    WEBHOOKS_ALLOW_PRIVATE: "true",
    LOG_LEVEL: "warn",
  });
}

function readCpu({ services }: Bench, process: ProcessUnderTest): number[] {
  return [process.cpuUs(), cpuTimeUs(services.postgresPid) ?? Number.NaN];
}

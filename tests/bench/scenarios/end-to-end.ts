import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import pg from "pg";
import { callEvenly, post, timeMs, toLatency } from "../even-load.ts";
import { applyLoad, type LoadResult } from "../load.ts";
import { ourConcurrency } from "../measure-apply.ts";
import { type Pipeline, startPipeline } from "../pipeline.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking, newBookings } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";

const connections = 64;
/** Of the search for what is sustained. */
const searchSteps = 8;
const raise = 1.4;
/** The backlog is flat if what waits at the end is worth no more than this. */
const flatBacklogS = 0.25;
/** Events a second whose way is followed under load. */
const followRate = 20;

export const endToEnd: Scenario = {
  name: "end-to-end",
  about: "from the POST to the row: what is sustained with a flat backlog, and how long it takes",
  isOnWholeMachine: true,
  async run(bench) {
    return [await oneAtATime(bench), await sustained(bench)];
  },
};

async function oneAtATime(bench: Bench): Promise<Section> {
  const title = "end to end, one event at a time, all processes on all CPUs";
  const measurements = await runRounds(bench, title, {
    "POST to row": () => withProbe(bench, ({ follow, pipeline }) => repeat(bench, pipeline, follow)),
    "each hop once": () => withProbe(bench, ({ callEachHop, pipeline }) => repeat(bench, pipeline, callEachHop)),
  });
  return {
    title,
    measurements,
    comparisons: [
      { figure: "p50Ms", of: "POST to row", to: "each hop once" },
      { figure: "p99Ms", of: "POST to row", to: "each hop once" },
    ],
  };
}

async function sustained(bench: Bench): Promise<Section> {
  const title = `end to end, sustained with a flat backlog, and the way of an event at half of that, all processes on all CPUs`;
  const measurements = await runRounds(bench, title, {
    ours: () =>
      withProbe(bench, async (probe) => {
        const rate = await findSustained(bench, probe.pipeline);
        const latency = await underLoad(bench, probe, rate / 2);
        await checkApplied(probe.pipeline);
        return { eventsPerSecond: rate, ...latency };
      }),
  });
  return { title, measurements, comparisons: [] };
}

interface Probe {
  pipeline: Pipeline;
  /** Posts an event and resolves when its row is visible. */
  follow(): Promise<void>;
  /** An HTTP request that ingest answers by itself, a write to Redis' disk, a read of Redis, a commit of PostgreSQL. */
  callEachHop(): Promise<void>;
}

async function withProbe(bench: Bench, measure: (probe: Probe) => Promise<Measurement>): Promise<Measurement> {
  const pipeline = await startPipeline(bench, {
    ...{ ingest: builtApps.ingest, worker: builtApps.worker, concurrency: ourConcurrency },
  });
  const pool = new pg.Pool({ connectionString: pipeline.database.url });
  await pool.query("create table hops (id uuid primary key)");
  const { redis } = bench.services;
  try {
    return await measure({
      pipeline,
      async follow() {
        const { eventId: id } = await post(pipeline.url, newEvent());
        const isVisible = async () => (await pool.query("select 1 from booking_events where id = $1", [id])).rowCount;
        while ((await isVisible()) === 0) {
          bench.signal.throwIfAborted();
          await sleep(1);
        }
      },
      async callEachHop() {
        await post(pipeline.url, { ...newEvent(), headers: { "x-dry-run": "true" } });
        await redis.set("hop", "1");
        await redis.get("hop");
        await pool.query("insert into hops values ($1)", [randomUUID()]);
      },
    });
  } finally {
    await pool.end();
    await pipeline.stop();
  }
}

function newEvent(): { body: string; contentType: string } {
  const booking = { ...fullBooking, consumerTripPartnerExternalReference: `TRIP-${randomUUID()}` };
  return { body: JSON.stringify(booking), contentType: "application/json" };
}

async function repeat(bench: Bench, pipeline: Pipeline, work: () => Promise<void>): Promise<Measurement> {
  const run = async (durationMs: number) => {
    const timesMs: number[] = [];
    for (const endAtMs = performance.now() + durationMs; performance.now() < endAtMs; )
      timesMs.push(await timeMs(work));
    return timesMs;
  };
  await run(bench.warmUpMs);
  const timesMs = await run(bench.measureMs);
  await untilApplied(bench, pipeline);
  return toLatency(timesMs);
}

async function underLoad(bench: Bench, { pipeline, follow }: Probe, rate: number): Promise<Measurement> {
  const { warmUpMs, measureMs } = bench;
  const [timesMs] = await Promise.all([
    sleep(warmUpMs).then(() => callEvenly(followRate, measureMs, () => timeMs(follow))),
    callEvenly(rate, warmUpMs + measureMs, () => post(pipeline.url, newEvent())),
  ]);
  await untilApplied(bench, pipeline);
  return toLatency(timesMs);
}

/**
 * Raises the rate until it is not sustained, and then halves the interval between the highest that was and the lowest
 * that was not.
 */
async function findSustained(bench: Bench, pipeline: Pipeline): Promise<number> {
  const { eventsPerSecond = 0 } = await load(pipeline, bench.warmUpMs);
  await untilApplied(bench, pipeline);
  let [rate, low, high] = [eventsPerSecond / 2, 0, Number.POSITIVE_INFINITY];
  for (let step = 0; step < (bench.isSmoke ? 1 : searchSteps); step += 1) {
    const isFlat = await isSustained(bench, pipeline, rate);
    bench.say(`  ${Math.round(rate)} events/s are ${isFlat ? "" : "not "}sustained`);
    if (isFlat) low = rate;
    else high = rate;
    rate = high === Number.POSITIVE_INFINITY ? rate * raise : (low + high) / 2;
  }
  // Where not even the least was sustained, it is what the answer is below of.
  return low === 0 ? high : low;
}

async function isSustained(bench: Bench, pipeline: Pipeline, rate: number): Promise<boolean> {
  const { answered } = await load(pipeline, bench.measureMs, rate);
  const backlog = await pipeline.countBacklog();
  await untilApplied(bench, pipeline);
  return backlog <= rate * flatBacklogS && answered > 0.95 * rate * (bench.measureMs / 1_000);
}

function load({ url }: Pipeline, durationMs: number, rate?: number): Promise<LoadResult> {
  return applyLoad({ url, ...newBookings, connections, durationMs, rate, isAside: true });
}

async function untilApplied({ signal }: Bench, pipeline: Pipeline): Promise<void> {
  while ((await pipeline.countBacklog()) > 0) {
    signal.throwIfAborted();
    await sleep(20);
  }
}

/** Each event was for a booking of its own, so that none may be lost or counted twice. */
async function checkApplied({ database }: Pipeline): Promise<void> {
  const [found] = await database.query<{ events: number; bookings: number; dead: number }>(
    `select (select count(*)::int from booking_events) as events, (select count(*)::int from bookings) as bookings,
       (select count(*)::int from dead_letters) as dead`,
  );
  if (found === undefined || found.events !== found.bookings || found.events === 0 || found.dead > 0) {
    throw new IntegrityError(`PostgreSQL has ${JSON.stringify(found)}.`);
  }
}

import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { Agent, type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import pg from "pg";
import { applyLoad, type LoadResult } from "../load.ts";
import { countLeft } from "../measure-apply.ts";
import { newQueuePrefix, startIngest, startWorker } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking, newBookings } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario } from "../scenario.ts";
import { timeMs, toLatency } from "../statistics.ts";

const connections = 64;
const searchSteps = 8;
/** By which the search raises a rate that is sustained. */
const raise = 1.4;
/** A rate is sustained if at the end no more events wait than arrive in this time. */
const sustainedBacklogS = 0.25;
/** Events a second that are followed to their rows under load. */
const followRate = 20;
const sendIntervalMs = 5;
/** Longer than the interval in which a worker begins at most one batch. */
const pauseMs = 50;
const agent = new Agent({ keepAlive: true, maxSockets: connections });

export const endToEnd: Scenario = {
  name: "end-to-end",
  about: "from the POST to the row: the rate that is sustained, and how long one event takes",
  isOnWholeMachine: true,
  async run(bench) {
    const title = "end to end, all processes on all CPUs";
    const measurements = await runRounds(bench, title, {
      "one event after a pause": () => withPipeline(bench, (pipeline) => followOneByOne(bench, pipeline)),
      "sustained rate, and events at half of it": () =>
        withPipeline(bench, async (pipeline) => {
          const eventsPerSecond = await findSustainedRate(bench, pipeline);
          return { eventsPerSecond, ...(await followUnderLoad(bench, pipeline, eventsPerSecond / 2)) };
        }),
    });
    return [{ title, measurements, comparisons: [] }];
  },
};

/** One ingest process and one worker, with a queue and a database of their own. */
interface Pipeline {
  /** Where events are posted to create bookings. */
  url: string;
  /** Events that were accepted and not yet applied. */
  countBacklog(): Promise<number>;
  /** Posts an event and resolves when its row is visible. */
  follow(): Promise<void>;
}

async function withPipeline(bench: Bench, measure: (pipeline: Pipeline) => Promise<Measurement>): Promise<Measurement> {
  const { services } = bench;
  return services.withDatabase(async (database) => {
    const queuePrefix = newQueuePrefix();
    const worker = await startWorker(bench, builtApps.worker, { queuePrefix, databaseUrl: database.url });
    const ingest = await startIngest(bench, builtApps.ingest, queuePrefix);
    const pool = new pg.Pool({ connectionString: database.url });
    try {
      const measurement = await measure({
        url: ingest.createUrl,
        countBacklog: () => countLeft(bench, queuePrefix),
        async follow() {
          const id = await post(ingest.createUrl);
          const isVisible = async () => (await pool.query("select 1 from booking_events where id = $1", [id])).rowCount;
          while ((await isVisible()) === 0) {
            bench.signal.throwIfAborted();
            await sleep(1);
          }
        },
      });
      // Each event was for another booking.
      const { rows } = await pool.query(
        "select (select count(*)::int from booking_events) as events, (select count(*)::int from bookings) as bookings",
      );
      const [{ events, bookings }] = rows;
      if (events === 0 || events !== bookings) throw new IntegrityError(`PostgreSQL has ${JSON.stringify(rows)}.`);
      return measurement;
    } finally {
      await pool.end();
      await Promise.all([ingest.stop(), worker.stop()]);
      await services.emptyRedis();
    }
  });
}

/** Posts a new booking. Uses node:http, since fetch takes three times the CPU time, which the service needs. */
async function post(url: string): Promise<string> {
  const booking = { ...fullBooking, consumerTripPartnerExternalReference: `TRIP-${randomUUID()}` };
  const sent = request(url, { method: "POST", agent, headers: { "content-type": "application/json" } });
  sent.end(JSON.stringify(booking));
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  const { eventId } = (await json(response)) as { eventId?: string };
  if (eventId === undefined) throw new IntegrityError(`An event was answered ${response.statusCode}.`);
  return eventId;
}

async function followOneByOne(bench: Bench, pipeline: Pipeline): Promise<Measurement> {
  const repeat = async (durationMs: number) => {
    const timesMs: number[] = [];
    const endAtMs = performance.now() + durationMs;
    while (performance.now() < endAtMs) {
      timesMs.push(await timeMs(pipeline.follow));
      await sleep(pauseMs);
    }
    return timesMs;
  };
  await repeat(bench.warmUpMs);
  return toLatency(await repeat(bench.measureMs));
}

/**
 * Raises the rate until it is not sustained, and then halves the interval between the highest that was and the lowest
 * that was not.
 */
async function findSustainedRate(bench: Bench, pipeline: Pipeline): Promise<number> {
  const { eventsPerSecond } = await load(pipeline, bench.warmUpMs);
  await untilApplied(bench, pipeline);
  let [rate, low, high] = [eventsPerSecond / 2, 0, Number.POSITIVE_INFINITY];
  for (let step = 0; step < (bench.isSmoke ? 1 : searchSteps); step += 1) {
    const isSustained = await sustains(bench, pipeline, rate);
    bench.say(`  ${Math.round(rate)} events/s are ${isSustained ? "" : "not "}sustained`);
    if (isSustained) low = rate;
    else high = rate;
    rate = high === Number.POSITIVE_INFINITY ? rate * raise : (low + high) / 2;
  }
  // If no rate was sustained, the lowest one that was tried is an upper bound.
  return low === 0 ? high : low;
}

async function sustains(bench: Bench, pipeline: Pipeline, rate: number): Promise<boolean> {
  const { answered } = await load(pipeline, bench.measureMs, rate);
  const backlog = await pipeline.countBacklog();
  await untilApplied(bench, pipeline);
  return backlog <= rate * sustainedBacklogS && answered > 0.95 * rate * (bench.measureMs / 1_000);
}

function load({ url }: Pipeline, durationMs: number, rate?: number): Promise<LoadResult> {
  return applyLoad({ url, ...newBookings, connections, durationMs, rate, isAside: true });
}

async function followUnderLoad(bench: Bench, pipeline: Pipeline, rate: number): Promise<Measurement> {
  const { warmUpMs, measureMs } = bench;
  const [timesMs] = await Promise.all([
    sleep(warmUpMs).then(() => callEvenly(followRate, measureMs, () => timeMs(pipeline.follow))),
    callEvenly(rate, warmUpMs + measureMs, () => post(pipeline.url)),
  ]);
  await untilApplied(bench, pipeline);
  return toLatency(timesMs);
}

/** Spreads the calls over each second. autocannon sends all requests of a second at its start. */
async function callEvenly<Result>(rate: number, durationMs: number, call: () => Promise<Result>): Promise<Result[]> {
  const calls: Promise<Result>[] = [];
  const startedAtMs = performance.now();
  const elapsedMs = () => performance.now() - startedAtMs;
  while (elapsedMs() < durationMs) {
    while (calls.length < (elapsedMs() / 1_000) * rate) {
      const called = call();
      // A failed call is reported by Promise.all at the end.
      called.catch(() => {});
      calls.push(called);
    }
    await sleep(sendIntervalMs);
  }
  return Promise.all(calls);
}

async function untilApplied({ signal }: Bench, pipeline: Pipeline): Promise<void> {
  while ((await pipeline.countBacklog()) > 0) {
    signal.throwIfAborted();
    await sleep(20);
  }
}

import type { EventEnvelope } from "@booking-events/schema";
import { createPool, migrate } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import type { Pool } from "pg";
import { createEnvelope } from "../fill-queue.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";
import { quantile } from "../statistics.ts";

const historySizes = [10, 1_000, 100_000, 400_000];
const smallHistorySizes = [10, 1_000];
/** Events of the booking that a late one takes its place before. */
const lateness = [1, 100];
const lateEventsMeasured = 100;
const eventsTogether = 800;
/** Of other bookings, in one transaction with a late event. */
const othersTogether = 50;
const applyOptions = { duplicateWindowMs: 72 * 3_600_000 };

export const lateEvents: Scenario = {
  name: "late-events",
  about: "a late event of a booking with few and with very many events, and what others feel of it",
  async run(bench) {
    const measurements: Record<string, Measurement>[] = [];
    for (let round = 1; round <= bench.rounds; round += 1) measurements.push(await measureAll(bench, round));
    return [
      ...lateness.map((places) => toSection(`a late event, by ${places}`, `, ${places} late`, measurements)),
      toSection(`${othersTogether} events of another booking beside a late one`, ", others", measurements),
    ];
  },
};

/** Each round has a database of its own, in which the bookings grow one after the other. */
async function measureAll(bench: Bench, round: number): Promise<Record<string, Measurement>> {
  const sizes = bench.isSmoke ? smallHistorySizes : historySizes;
  const database = await bench.services.createDatabase();
  await migrate(database.url);
  const pool = createPool({
    databaseUrl: database.url,
    applicationName: "bench",
    maxConnections: 2,
    onError: () => {},
  });
  const measured: Record<string, Measurement> = {};
  try {
    for (const size of sizes) {
      const booking = createBooking(`TRIP-${size}`);
      await booking.grow(pool, size, bench.signal);
      for (const places of lateness) {
        const timesMs = await timeEach(lateEventsMeasured, () => apply(pool, [booking.late(places)]));
        measured[`${size} events, ${places} late`] = summarize(timesMs);
      }
      const others = createBooking(`OTHER-${size}`);
      const withOthers = (late: EventEnvelope[]) =>
        apply(pool, [...late, ...Array.from({ length: othersTogether }, () => others.next())]);
      measured[`${size} events, others`] = summarize(
        await timeEach(lateEventsMeasured, () => withOthers([booking.late(1)])),
      );
      for (const [name, { p50Ms }] of Object.entries(measured).slice(-lateness.length - 1))
        bench.say(`late-events, round ${round} of ${bench.rounds}, ${name}: p50Ms ${p50Ms?.toPrecision(4)}`);
    }
    return measured;
  } finally {
    await pool.end();
    await database.drop();
  }
}

function toSection(title: string, ending: string, rounds: Record<string, Measurement>[]): Section {
  const names = Object.keys(rounds[0] ?? {}).filter((name) => name.endsWith(ending));
  const [smallest = "", largest = ""] = [names[0], names.at(-1)];
  return {
    title,
    measurements: Object.fromEntries(names.map((name) => [name, rounds.flatMap((round) => round[name] ?? [])])),
    comparisons: [{ figure: "p50Ms", of: largest, to: smallest, atLeast: 0.5 }],
  };
}

/** A booking that gets another content with each event. Two places are left between events, for late ones. */
function createBooking(reference: string) {
  let size = 0;
  let lateSoFar = 0;
  const between = 1_000_000;
  const create = (place: number) => {
    const envelope = createEnvelope(0, { kind: "update", reference, payload: fullBooking });
    const payload = { ...envelope.payload, consumerTripVenueName: `Venue ${place}` };
    return { ...envelope, sequence: envelope.sequence + place, payload };
  };
  const next = () => {
    size += 1;
    return create(size * between);
  };
  return {
    next,
    late(places: number) {
      lateSoFar += 1;
      return create(Math.max(size - places, 0) * between + lateSoFar);
    },
    async grow(pool: Pool, toSize: number, signal: AbortSignal) {
      while (size < toSize) {
        signal.throwIfAborted();
        await apply(pool, Array.from({ length: Math.min(eventsTogether, toSize - size) }, next));
      }
    },
  };
}

async function apply(pool: Pool, envelopes: EventEnvelope[]): Promise<void> {
  const outcomes = await applyEvents(pool, envelopes, applyOptions);
  if (outcomes.size !== envelopes.length)
    throw new IntegrityError(`${envelopes.length - outcomes.size} of ${envelopes.length} events were left out.`);
}

async function timeEach(count: number, work: () => Promise<void>): Promise<number[]> {
  const timesMs: number[] = [];
  for (let done = 0; done < count; done += 1) {
    const startMs = performance.now();
    await work();
    timesMs.push(performance.now() - startMs);
  }
  return timesMs;
}

function summarize(timesMs: number[]): Measurement {
  return { p50Ms: quantile(timesMs, 0.5), p99Ms: quantile(timesMs, 0.99) };
}

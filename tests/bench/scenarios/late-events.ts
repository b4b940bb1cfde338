import type { EventEnvelope } from "@booking-events/schema";
import { createPool, migrate } from "@booking-events/store";
import { applyEvents } from "@booking-events/worker/apply/apply-events";
import type { Pool } from "pg";
import { createEnvelope } from "../fill-queue.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";
import { timeMs, toLatency } from "../statistics.ts";

/** Events in the log of a booking. */
const logSizes = [10, 1_000, 100_000, 400_000];
const logSizesInSmoke = [10, 1_000];
/** How many events of the booking overtake a late one. */
const lateness = [1, 100];
const lateEventsMeasured = 100;
const eventsTogether = 800;
/** Between the sequences of two events, to leave room for late ones. */
const sequenceStep = 1_000_000;

export const lateEvents: Scenario = {
  name: "late-events",
  about: "a late event of a booking with few events in the log, and with very many",
  run: (bench) =>
    bench.services.withDatabase(async ({ url }) => {
      await migrate(url);
      const pool = createPool({ databaseUrl: url, applicationName: "bench", maxConnections: 2, onError: () => {} });
      try {
        return [await compare(bench, pool)];
      } finally {
        await pool.end();
      }
    }),
};

async function compare(bench: Bench, pool: Pool): Promise<Section> {
  const sizes = bench.isSmoke ? logSizesInSmoke : logSizes;
  for (const size of sizes) await fillLog(pool, size, bench.signal);
  const name = (size: number, places: number) => `${size} events in the log, ${places} late`;
  const cases = lateness.flatMap((places) => sizes.map((size) => ({ size, places })));
  const variants = cases.map(({ size, places }) => [name(size, places), () => measure(pool, size, places)]);
  const title = "late events";
  return {
    title,
    measurements: await runRounds(bench, title, Object.fromEntries(variants)),
    comparisons: lateness.map((places) => ({
      ...{ figure: "p50Ms", of: name(sizes.at(-1) ?? 0, places), to: name(sizes[0] ?? 0, places), atLeast: 0.5 },
    })),
  };
}

async function fillLog(pool: Pool, size: number, signal: AbortSignal): Promise<void> {
  for (let start = 0; start < size; start += eventsTogether) {
    signal.throwIfAborted();
    const count = Math.min(eventsTogether, size - start);
    await apply(
      pool,
      Array.from({ length: count }, (_, index) => create(size, (start + index + 1) * sequenceStep)),
    );
  }
}

let lateSoFar = 0;
async function measure(pool: Pool, size: number, places: number): Promise<Measurement> {
  const timesMs: number[] = [];
  for (let done = 0; done < lateEventsMeasured; done += 1) {
    lateSoFar += 1;
    const late = create(size, Math.max(size - places, 0) * sequenceStep + lateSoFar);
    timesMs.push(await timeMs(() => apply(pool, [late])));
  }
  return toLatency(timesMs);
}

/** @returns an event with content of its own, of the booking whose log has this size */
function create(logSize: number, sequence: number): EventEnvelope {
  const envelope = createEnvelope(0, { kind: "update", reference: `TRIP-${logSize}`, payload: fullBooking });
  const payload = { ...envelope.payload, consumerTripVenueName: `Venue ${sequence}` };
  return { ...envelope, sequence: envelope.sequence + sequence, payload };
}

async function apply(pool: Pool, envelopes: EventEnvelope[]): Promise<void> {
  const outcomes = await applyEvents(pool, envelopes, { duplicateWindowMs: 72 * 3_600_000 });
  if (outcomes.size !== envelopes.length) throw new IntegrityError("Events were left out of their transaction.");
}

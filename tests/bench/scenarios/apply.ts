import { builtApps } from "@booking-events/harness/app-process";
import type { EventEnvelope } from "@booking-events/schema";
import { createEnvelope } from "../fill-queue.ts";
import { measureApply } from "../measure-apply.ts";
import { baseline, fromOtherClone } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import {
  type Bench,
  type Comparison,
  IntegrityError,
  type Measurement,
  type Scenario,
  type Section,
} from "../scenario.ts";

/** Enough to make what V8 compiles late, and the end, when fewer and fewer events are left, insignificant. */
const eventsMeasured = 100_000;
const eventsOfTextbook = 3_000;
const eventsInSmoke = 1_500;
/** With 20 or 50 at once, the textbook applies fewer events a second. */
const textbookConcurrency = 5;

interface Workload {
  title: string;
  create(count: number): EventEnvelope[];
  /** How many bookings there must be at the end. */
  bookings(count: number): number;
}

const hotBookings = 100;
/** Of ten events, one repeats an earlier one's idempotency key, and one is late. */
const tenth = 10;
/** How many others overtake a late event. */
const lateBy = 300;

const workloads: Workload[] = [
  {
    title: "new bookings",
    create: createNewBookings,
    bookings: (count) => count,
  },
  {
    title: `updates of ${hotBookings} bookings`,
    create: (count) => range(count).map((index) => create(index, "update", `TRIP-${index % hotBookings}`)),
    bookings: () => hotBookings,
  },
  {
    title: "a mix with duplicates and late events",
    create: (count) =>
      delaySome(
        range(count).map((index) => {
          const key = `key-${index % tenth === 1 ? index - 1 : index}`;
          return create(index, index % 3 === 0 ? "create" : "update", `TRIP-${Math.floor(index / 4)}`, key);
        }),
      ),
    bookings: (count) => Math.ceil(count / 4),
  },
];

export const apply: Scenario = {
  name: "apply",
  about: "events applied by one worker process from a full queue, beside one transaction for each event",
  async run(bench) {
    const sections: Section[] = [];
    for (const workload of bench.isSmoke ? workloads.slice(2) : workloads) {
      sections.push(await compare(bench, workload));
    }
    return sections;
  },
};

async function compare(bench: Bench, workload: Workload): Promise<Section> {
  const title = `apply, ${workload.title}`;
  const run = (program: readonly string[], events: number, concurrency?: number) => () =>
    measure(bench, workload, program, bench.isSmoke ? eventsInSmoke : events, concurrency);
  const otherClone = Object.entries(fromOtherClone(bench, builtApps.worker));
  const measurements = await runRounds(bench, title, {
    ours: run(builtApps.worker, eventsMeasured),
    textbook: run(baseline("textbook-worker"), eventsOfTextbook, textbookConcurrency),
    ...Object.fromEntries(otherClone.map(([name, program]) => [name, run(program, eventsMeasured)])),
  });
  return {
    title,
    measurements,
    comparisons: [
      { figure: "eventsPerSecond", of: "ours", to: "textbook" },
      ...otherClone.flatMap(([to]): Comparison[] => [
        { figure: "eventsPerSecond", of: "ours", to },
        { figure: "cpuUs", of: "ours", to },
        { figure: "kInstructions", of: "ours", to },
        { figure: "postgresKInstructions", of: "ours", to },
      ]),
    ],
  };
}

function measure(
  bench: Bench,
  workload: Workload,
  program: readonly string[],
  count: number,
  concurrency: number | undefined,
): Promise<Measurement> {
  return bench.services.withDatabase(async (database) => {
    const events = workload.create(count);
    const measurement = await measureApply(bench, program, { database, events, concurrency });
    const [found] = await database.query<{ events: number; bookings: number }>(
      "select (select count(*)::int from booking_events) as events, (select count(*)::int from bookings) as bookings",
    );
    if (found?.events !== count || found.bookings !== workload.bookings(count)) {
      throw new IntegrityError(`PostgreSQL has ${JSON.stringify(found)}.`);
    }
    return measurement;
  });
}

function createNewBookings(count: number): EventEnvelope[] {
  return range(count).map((index) => create(index, "create", `TRIP-${index}`));
}

function create(index: number, kind: EventEnvelope["kind"], reference: string, idempotencyKey?: string): EventEnvelope {
  return createEnvelope(index, { kind, reference, payload: fullBooking, ...(idempotencyKey && { idempotencyKey }) });
}

function delaySome(envelopes: EventEnvelope[]): EventEnvelope[] {
  const place = (index: number) => (index % tenth === 5 ? index + lateBy : index);
  return envelopes
    .map((envelope, index) => ({ envelope, place: place(index) }))
    .sort((a, b) => a.place - b.place)
    .map(({ envelope }) => envelope);
}

function range(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}

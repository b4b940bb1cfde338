import { builtApps } from "@booking-events/harness/app-process";
import type { EventEnvelope } from "@booking-events/schema";
import { baseline, newQueuePrefix } from "../contestant.ts";
import type { BenchDatabase } from "../data-services.ts";
import { createEnvelope, fillQueue } from "../fill-queue.ts";
import { measureApply, ourConcurrency } from "../measure-apply.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario, type Section } from "../scenario.ts";

/** Large enough that the end doesn't show. */
const eventsMeasured = 30_000;
const eventsOfTextbook = 3_000;
const textbookConcurrencies = [5, 20, 50];

interface Workload {
  title: string;
  create(count: number): EventEnvelope[];
  /** Bookings there must be in the end. */
  bookings(count: number): number;
}

const hotBookings = 100;
/** Of ten events, one repeats an earlier one's idempotency key, and one comes late. */
const tenth = 10;
/** How many others overtake a late event. */
const lateBy = 300;

const workloads: Workload[] = [
  {
    title: "new bookings",
    create: (count) => Array.from({ length: count }, (_, index) => create(index, "create", `TRIP-${index}`)),
    bookings: (count) => count,
  },
  {
    title: `updates of ${hotBookings} bookings`,
    create: (count) =>
      Array.from({ length: count }, (_, index) => create(index, "update", `TRIP-${index % hotBookings}`)),
    bookings: () => hotBookings,
  },
  {
    title: "a mix with duplicates and late events",
    create: (count) =>
      delaySome(
        Array.from({ length: count }, (_, index) => {
          const key = `key-${index % tenth === 1 ? index - 1 : index}`;
          return create(index, index % 3 === 0 ? "create" : "update", `TRIP-${Math.floor(index / 4)}`, key);
        }),
      ),
    bookings: (count) => Math.ceil(count / 4),
  },
];

export const apply: Scenario = {
  name: "apply",
  about: "events applied by one worker process from a full queue, beside two baselines",
  async run(bench) {
    const sections: Section[] = [];
    for (const workload of bench.isSmoke ? workloads.slice(2) : workloads)
      sections.push(await compare(bench, workload));
    return sections;
  },
};

async function compare(bench: Bench, workload: Workload): Promise<Section> {
  const ours = { program: builtApps.worker, concurrency: ourConcurrency, isApplied: true };
  const noOp = { program: baseline("no-op-worker"), concurrency: ourConcurrency, isApplied: false };
  const textbooks = (bench.isSmoke ? [5] : textbookConcurrencies).map((concurrency) => ({
    ...{ name: `textbook, ${concurrency} at once`, program: baseline("textbook-worker"), isApplied: true },
    concurrency: String(concurrency),
  }));
  const title = `apply, ${workload.title}`;
  const count = (events: number) => (bench.isSmoke ? 1_500 : events);
  const measurements: Record<string, Measurement[]> = await runRounds(bench, title, {
    ours: () => measure(bench, workload, ours, count(eventsMeasured)),
    ...Object.fromEntries(
      textbooks.map((textbook) => [textbook.name, () => measure(bench, workload, textbook, count(eventsOfTextbook))]),
    ),
    "no-op": () => measure(bench, workload, noOp, count(eventsMeasured)),
  });
  return {
    title,
    measurements,
    comparisons: [
      ...textbooks.map(({ name }) => ({ figure: "eventsPerSecond" as const, of: "ours", to: name, atLeast: 3 })),
      { figure: "eventsPerSecond", of: "ours", to: "no-op", atLeast: 0.5 },
      { figure: "cpuUs", of: "ours", to: "no-op", atLeast: 0.5 },
    ],
  };
}

async function measure(
  bench: Bench,
  workload: Workload,
  { program, concurrency, isApplied }: { program: readonly string[]; concurrency: string; isApplied: boolean },
  count: number,
): Promise<Measurement> {
  const { services } = bench;
  const queuePrefix = newQueuePrefix();
  const database = await services.createDatabase();
  try {
    await fillQueue(services.redisUrl, queuePrefix, workload.create(count));
    const measurement = await measureApply(bench, { program, concurrency, queuePrefix, database, count });
    if (isApplied) await checkApplied(database, workload, count);
    return measurement;
  } finally {
    await database.drop();
    await services.emptyRedis();
  }
}

async function checkApplied(database: BenchDatabase, workload: Workload, count: number): Promise<void> {
  const [found] = await database.query<{ events: number; bookings: number; dead: number }>(
    `select (select count(*)::int from booking_events) as events, (select count(*)::int from bookings) as bookings,
       (select count(*)::int from dead_letters) as dead`,
  );
  const expected = { events: count, bookings: workload.bookings(count), dead: 0 };
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    throw new IntegrityError(`PostgreSQL has ${JSON.stringify(found)}, and should have ${JSON.stringify(expected)}.`);
  }
}

function create(
  index: number,
  kind: EventEnvelope["kind"],
  reference: string,
  idempotencyKey: string | null = null,
): EventEnvelope {
  return createEnvelope(index, { kind, reference, idempotencyKey, payload: fullBooking });
}

function delaySome(envelopes: EventEnvelope[]): EventEnvelope[] {
  const place = (index: number) => (index % tenth === 5 ? index + lateBy : index);
  return envelopes
    .map((envelope, index) => ({ envelope, place: place(index) }))
    .sort((a, b) => a.place - b.place)
    .map(({ envelope }) => envelope);
}

import { totalmem } from "node:os";
import { builtApps } from "@booking-events/harness/app-process";
import type { EventEnvelope } from "@booking-events/schema";
import type { BenchDatabase } from "../data-services.ts";
import { createEnvelope } from "../fill-queue.ts";
import { anyBooking, type FilledTables, fillTables } from "../fill-tables.ts";
import { measureApply } from "../measure-apply.ts";
import { measureQueries } from "../measure-queries.ts";
import { runRounds } from "../rounds.ts";
import { fullBooking } from "../sample-events.ts";
import {
  type Bench,
  type Comparison,
  type Figure,
  IntegrityError,
  type Measurement,
  type Scenario,
} from "../scenario.ts";

const sizesInSmoke = [2_000, 8_000];

/** A quarter of the memory, as PostgreSQL's manual recommends, and checkpoints that are rarer than each gigabyte. */
const postgresSettings = {
  shared_buffers: `${Math.floor(totalmem() / 4 / 1_048_576)}MB`,
  max_wal_size: "8GB",
  checkpoint_timeout: "15min",
};

export const growth: Scenario = {
  name: "growth",
  postgresSettings,
  about: "the questions of operators and followers, and events applied, with 10,000,000 events stored",
  run: (bench) => withTables(bench, bench.isSmoke ? sizesInSmoke : [1_000_000, 10_000_000]),
};

interface Filled {
  database: BenchDatabase;
  tables: FilledTables;
}

/**
 * Fills one database after the other, and measures when all are there.
 *
 * @param sizes how many events to store. The first is what the others are compared with
 */
async function withTables(
  bench: Bench,
  [events, ...others]: readonly number[],
  filled: Filled[] = [],
): ReturnType<Scenario["run"]> {
  if (events === undefined) return compare(bench, filled);
  return bench.services.withDatabase(async (database) => {
    bench.say(`filling tables with ${events.toLocaleString("en")} events`);
    const tables = await fillTables(database, events);
    return withTables(bench, others, [...filled, { database, tables }]);
  });
}

/** What events to apply may need. After days of work it is there. */
async function readIntoMemory(database: BenchDatabase): Promise<void> {
  await database.query("create extension pg_prewarm");
  await database.query(`
    select pg_prewarm(oid::regclass, 'read') from pg_class where relname = 'bookings'
    union all
    select pg_prewarm(indexrelid::regclass) from pg_index where indrelid = 'bookings'::regclass`);
}

async function compare(bench: Bench, filled: Filled[]): ReturnType<Scenario["run"]> {
  // The smallest last, since the others may take its place.
  for (const { database } of filled.toReversed()) await readIntoMemory(database);
  const applied = bench.isSmoke ? 1_500 : 20_000;
  const names = filled.map(({ tables }) => tables.events.toLocaleString("en"));
  const [smallest = ""] = names;
  const title = (question: string) => `growth, ${question}`;
  const byName = (measure: (one: Filled) => () => Promise<Measurement>) =>
    Object.fromEntries(filled.map((one, index) => [names[index] ?? "", measure(one)]));
  const beside = (figure: Figure): Comparison[] => names.slice(1).map((of) => ({ figure, of, to: smallest }));

  const sections = [];
  const apply = await runRounds(
    bench,
    title("apply"),
    byName((one) => () => measureApplied(bench, one, applied)),
  );
  sections.push({
    title: title("apply"),
    measurements: apply,
    comparisons: beside("eventsPerSecond"),
  });
  for (const [question, ofDatabase] of Object.entries(await measureQueries(bench, filled))) {
    const measurements = Object.fromEntries(
      ofDatabase.map((measurement, index) => [names[index] ?? "", [measurement]]),
    );
    sections.push({
      title: title(question),
      measurements,
      comparisons: question === "size" ? [] : beside("p95Ms"),
    });
  }
  return sections;
}

/**
 * Half of the events create bookings of other guests, and half update any of those that are stored. As with most
 * updates, the guest and the dates stay.
 */
async function measureApplied(bench: Bench, { database, tables }: Filled, count: number): Promise<Measurement> {
  const before = await countEvents(database);
  const events = Array.from({ length: count }, (_, index): EventEnvelope => {
    const isNew = index % 2 === 0;
    const booking = isNew ? before + index : anyBooking(tables);
    const payload = isNew
      ? {
          ...fullBooking,
          consumerEmail: `guest${booking}@example.org`,
          consumerPhone: `+44 20 ${10_000_000 + booking}`,
        }
      : { ...withoutContacts(fullBooking), consumerTripArrivalDate: tables.arrivalDate(booking) };
    const kind = isNew ? "create" : "update";
    return createEnvelope(before + index, { kind, reference: tables.reference(booking), payload });
  });
  const measurement = await measureApply(bench, builtApps.worker, { database, events });
  const applied = (await countEvents(database)) - before;
  if (applied !== count) throw new IntegrityError(`${count} events were queued, ${applied} applied.`);
  return measurement;
}

function withoutContacts({ consumerEmail: _, consumerPhone: __, ...others }: typeof fullBooking) {
  return others;
}

async function countEvents(database: BenchDatabase): Promise<number> {
  const [found] = await database.query<{ count: number }>("select count(*)::int as count from booking_events");
  return found?.count ?? 0;
}

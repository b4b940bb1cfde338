import { readChanges } from "@booking-events/feed/read-changes";
import {
  bookingKey,
  createPool,
  findBookings,
  findEvent,
  listBookingEvents,
  listEvents,
  type Queryable,
} from "@booking-events/store";
import type { BenchDatabase } from "./data-services.ts";
import { eventsPerBooking, type FilledTables } from "./fill-tables.ts";
import type { Bench, Measurement } from "./scenario.ts";
import { quantile, timeMs } from "./statistics.ts";

type Query = (client: Queryable, tables: FilledTables) => Promise<unknown>;

const hourMs = 60 * 60 * 1_000;
const limit = 50;

/** As the operator's commands and followers of the feed ask them. */
const queries: Record<string, Query> = {
  "the newest events": (client) => listEvents(client, { limit }),
  "events of an hour": (client, tables) => {
    const since = new Date(anyTimeMs(tables));
    return listEvents(client, { since, until: new Date(since.getTime() + hourMs), limit });
  },
  "creates of a partner in an hour": (client, tables) => {
    const since = new Date(anyTimeMs(tables));
    return listEvents(client, {
      ...{
        partner: "acme",
        kind: "create",
        outcome: "created",
        since,
        until: new Date(since.getTime() + hourMs),
        limit,
      },
    });
  },
  "events of a reference": (client, tables) =>
    listEvents(client, { partner: "acme", reference: anyReference(tables), limit }),
  "a booking": (client, tables) => findBookings(client, [anyBookingKey(tables)]),
  "a booking's events": (client, tables) => listBookingEvents(client, anyBookingKey(tables), { limit }),
  "an event": async (client, tables) => {
    const [event] = await listEvents(client, { since: new Date(anyTimeMs(tables)), limit: 1 });
    return findEvent(client, event?.id ?? "");
  },
  "a page of the feed": (client, tables) => readChanges(client, { after: anyNumber(tables.events - limit), limit }),
};

/** @returns for each question, the answer times of each database in turn; and what an event takes there */
export async function measureQueries(
  { isSmoke }: Bench,
  filled: readonly { database: BenchDatabase; tables: FilledTables }[],
): Promise<Record<string, Measurement[]>> {
  const [warmUp, count] = isSmoke ? [1, 5] : [100, 500];
  const pools = filled.map(({ database, tables }) => ({
    tables,
    pool: createPool({
      ...{ databaseUrl: database.url, applicationName: "bench", maxConnections: 1, onError: () => {} },
    }),
  }));
  const measured: Record<string, Measurement[]> = {};
  for (const [question, query] of Object.entries(queries)) {
    const timesMs = filled.map((): number[] => []);
    for (let turn = 0; turn < warmUp + count; turn += 1) {
      for (const [index, { pool, tables }] of pools.entries()) {
        const time = await timeMs(() => query(pool, tables));
        if (turn >= warmUp) timesMs[index]?.push(time);
      }
    }
    measured[question] = timesMs.map((times) => ({ p50Ms: quantile(times, 0.5), p95Ms: quantile(times, 0.95) }));
  }
  measured["size"] = await Promise.all(filled.map(({ database, tables }) => measureSizes(database, tables)));
  await Promise.all(pools.map(({ pool }) => pool.end()));
  return measured;
}

/** Bytes of the tables and of their indexes. */
async function measureSizes(database: BenchDatabase, { events, bookings }: FilledTables): Promise<Measurement> {
  const [sizes] = await database.query<Record<"log" | "logIndexes" | "bookings" | "bookingIndexes" | "feed", string>>(`
    with relation as (
      select coalesce(pg_partition_root(oid), oid) as root, pg_table_size(oid) as bytes, pg_indexes_size(oid) as indexes
      from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace
    ), size as (select root::regclass::text as name, sum(bytes) as bytes, sum(indexes) as indexes from relation group by 1)
    select
      (select bytes from size where name = 'booking_events') as log,
      (select indexes from size where name = 'booking_events') as "logIndexes",
      (select bytes from size where name = 'bookings') as bookings,
      (select indexes from size where name = 'bookings') as "bookingIndexes",
      (select bytes + indexes from size where name = 'booking_changes') as feed`);
  return {
    logBytes: Number(sizes?.log) / events,
    logIndexBytes: Number(sizes?.logIndexes) / events,
    bookingBytes: Number(sizes?.bookings) / bookings,
    bookingIndexBytes: Number(sizes?.bookingIndexes) / bookings,
    changeBytes: Number(sizes?.feed) / events,
  };
}

function anyNumber(below: number): number {
  return Math.floor(Math.random() * below);
}

function anyTimeMs({ startMs, intervalMs, events }: FilledTables): number {
  return startMs + anyNumber(events) * intervalMs;
}

function anyReference(tables: FilledTables): string {
  return tables.reference(anyNumber(tables.events / eventsPerBooking));
}

function anyBookingKey(tables: FilledTables): Buffer {
  return bookingKey("acme", "trip", anyReference(tables));
}

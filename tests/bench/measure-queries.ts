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

type Query = (client: Queryable) => Promise<unknown>;

const hourMs = 60 * 60 * 1_000;
const limit = 50;

/** As the operator's commands and followers of the feed ask them. Each call chooses what to ask for. */
const questions: Record<string, (tables: FilledTables) => Query> = {
  "the newest events": () => (client) => listEvents(client, { limit }),
  "events of an hour": (tables) => {
    const hour = anyHour(tables);
    return (client) => listEvents(client, { ...hour, limit });
  },
  "creates of a partner in an hour": (tables) => {
    const filter = { partner: "acme", kind: "create", outcome: "created", ...anyHour(tables) } as const;
    return (client) => listEvents(client, { ...filter, limit });
  },
  "events of a reference": (tables) => {
    const reference = anyReference(tables);
    return (client) => listEvents(client, { partner: "acme", reference, limit });
  },
  "a booking": (tables) => {
    const key = anyBookingKey(tables);
    return (client) => findBookings(client, [key]);
  },
  "a booking's events": (tables) => {
    const key = anyBookingKey(tables);
    return (client) => listBookingEvents(client, key, { limit });
  },
  "an event": (tables) => {
    const since = new Date(anyTimeMs(tables));
    return async (client) => {
      const [event] = await listEvents(client, { since, limit: 1 });
      return findEvent(client, event?.id ?? "");
    };
  },
  "a page of the feed": (tables) => {
    const after = anyNumber(tables.events - limit);
    return (client) => readChanges(client, { after, limit });
  },
};

/**
 * Asks each question twice. The second answer counts, with its rows in memory: the tables are larger than that.
 *
 * @returns for each question, the answer times of each database in turn; and what an event takes there
 */
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
  for (const [question, choose] of Object.entries(questions)) {
    const timesMs = filled.map((): number[] => []);
    for (let turn = 0; turn < warmUp + count; turn += 1) {
      for (const [index, { pool, tables }] of pools.entries()) {
        const query = choose(tables);
        await query(pool);
        const time = await timeMs(() => query(pool));
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

function anyHour(tables: FilledTables): { since: Date; until: Date } {
  const since = anyTimeMs(tables);
  return { since: new Date(since), until: new Date(since + hourMs) };
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

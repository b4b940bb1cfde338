import { pullChanges } from "@booking-events/feed";
import {
  bookingKey,
  createPool,
  estimateRemovals,
  findBookings,
  findEvent,
  findGuestBookings,
  hashContacts,
  listBookingEvents,
  listEvents,
  listPartnerBookings,
  openDigestKey,
  toGuestSearch,
} from "@booking-events/store";
import type { Pool } from "pg";
import type { BenchDatabase } from "./data-services.ts";
import { anyBooking, type FilledTables, silentPartner } from "./fill-tables.ts";
import { type Bench, IntegrityError, type Measurement } from "./scenario.ts";
import { quantile, timeMs } from "./statistics.ts";

type Query = (pool: Pool) => Promise<unknown>;

const hourMs = 60 * 60 * 1_000;
const monthMs = 30 * 24 * hourMs;
/** How many bookings can be found by their guests. */
const guests = 200;
const limit = 50;

/** As the operator's commands and followers of the feed ask them. Each call chooses what to ask for. */
const questions: Record<string, (tables: FilledTables) => Query> = {
  "the newest events": () => (pool) => listEvents(pool, { limit }),
  "events of an hour": (tables) => {
    const hour = anyHour(tables);
    return (pool) => listEvents(pool, { ...hour, limit });
  },
  "creates of a partner in an hour": (tables) => {
    const filter = { partner: "acme", kind: "create", outcome: "created", ...anyHour(tables) } as const;
    return (pool) => listEvents(pool, { ...filter, limit });
  },
  "deletes of a month": (tables) => {
    const since = new Date(Math.min(anyTimeMs(tables), endMs(tables) - monthMs));
    const filter = { outcome: "deleted", since, until: new Date(since.getTime() + monthMs) } as const;
    return (pool) => listEvents(pool, { ...filter, limit });
  },
  "the last event of a silent partner": () => (pool) => listEvents(pool, { partner: silentPartner, limit: 1 }),
  "events of a reference": (tables) => {
    const reference = anyReference(tables);
    return (pool) => listEvents(pool, { partner: "acme", reference, limit });
  },
  "a booking": (tables) => {
    const key = anyBookingKey(tables);
    return (pool) => findBookings(pool, [key]);
  },
  "a booking's events": (tables) => {
    const key = anyBookingKey(tables);
    return (pool) => listBookingEvents(pool, key, { limit });
  },
  "an event": (tables) => {
    const since = new Date(anyTimeMs(tables));
    return async (pool) => {
      const [event] = await listEvents(pool, { since, limit: 1 });
      return findEvent(pool, event?.id ?? "");
    };
  },
  "a guest's bookings": (tables) => {
    const email = tables.email(bookingOf(anyNumber(guests), tables));
    const search = toGuestSearch("email", email, undefined);
    if (search === undefined) throw new IntegrityError(`${email} is no address.`);
    return async (pool) => {
      const found = await findGuestBookings(pool, await openDigestKey(pool, undefined), search);
      if (found.length !== 1) throw new IntegrityError(`${found.length} bookings of one guest were found: ${email}.`);
    };
  },
  "a partner's bookings": (tables) => {
    const after = { createdAt: new Date(anyTimeMs(tables)).toISOString(), key: Buffer.alloc(0) };
    return (pool) => listPartnerBookings(pool, "acme", { after, createdBefore: new Date(), limit });
  },
  "what retention would remove": () => (pool) =>
    estimateRemovals(pool, { retentionDays: 180, deletedRetentionDays: 30, deadLetterRetentionDays: 30 }),
  "a page of the feed": (tables) => {
    const after = anyNumber(tables.events - limit);
    return (pool) => pullChanges(pool, { name: "bench", after, limit });
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
      databaseUrl: database.url,
      applicationName: "bench",
      maxConnections: 1,
      onError: () => {},
    }),
  }));
  for (const { pool, tables } of pools) await addGuests(pool, tables);
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

/** The bookings have hashes that nobody looks up. */
async function addGuests(pool: Pool, tables: FilledTables): Promise<void> {
  const key = await openDigestKey(pool, undefined);
  for (let guest = 0; guest < guests; guest += 1) {
    const booking = bookingOf(guest, tables);
    await pool.query("update bookings set guest_hashes = $1 where reference = $2", [
      hashContacts(key, { payload: { consumerEmail: tables.email(booking) }, defaultCountry: null }),
      tables.reference(booking),
    ]);
  }
}

/** None of these is deleted. */
function bookingOf(guest: number, { bookings }: FilledTables): number {
  return guest * Math.floor(bookings / guests);
}

function endMs({ startMs, intervalMs, events }: FilledTables): number {
  return startMs + events * intervalMs;
}

function anyTimeMs({ startMs, intervalMs, events }: FilledTables): number {
  return startMs + anyNumber(events) * intervalMs;
}

function anyReference(tables: FilledTables): string {
  return tables.reference(anyBooking(tables));
}

function anyBookingKey(tables: FilledTables): Buffer {
  return bookingKey("acme", "trip", anyReference(tables));
}

import { migrate } from "@booking-events/store";
import type { BenchDatabase } from "./data-services.ts";
import { firstReceivedAtMs } from "./fill-queue.ts";

export const eventsPerBooking = 4;
const eventsPerStatement = 100_000;
const spanMs = 360 * 24 * 60 * 60 * 1_000;

export interface FilledTables {
  events: number;
  bookings: number;
  /** What the events have in common. */
  payload: Readonly<Record<string, string | undefined>>;
  /** Of a booking that has all its events, by its number from 0. */
  reference: (booking: number) => string;
  /** Of a booking's last event, as sent. */
  arrivalDate: (booking: number) => string;
  /** When the first event was received. Each later one follows at the same distance. */
  startMs: number;
  intervalMs: number;
}

/**
 * Fills the tables as the worker would have in a year: each booking is created, and updated three times with a quarter
 * of a year in between. Late and repeated events are missing.
 */
export async function fillTables(
  database: BenchDatabase,
  events: number,
  payload: FilledTables["payload"],
): Promise<FilledTables> {
  const bookings = events / eventsPerBooking;
  const startMs = firstReceivedAtMs - spanMs;
  const arrivalDate = (booking: number) => toArrivalDate(booking + (eventsPerBooking - 1) * bookings);
  const intervalMs = spanMs / events;
  const tables = { events, bookings, payload, startMs, intervalMs, reference: toReference, arrivalDate };
  await migrate(database.url);
  await database.query("set synchronous_commit = off");
  for (let at = startMs; at < firstReceivedAtMs; at = startOfNextMonth(at)) await createPartition(database, at);
  await database.query(createSource(tables));
  for (let first = 0; first < events; first += eventsPerStatement) {
    const source = `source(${first}, ${Math.min(first + eventsPerStatement, events) - 1})`;
    await database.query(insertEvents(source));
    await database.query(insertChanges(source));
    if (first >= events - bookings) await database.query(insertBookings(source));
  }
  await database.query(`update feed_position set last_id = ${events}`);
  await database.query("set synchronous_commit = on");
  await database.query("vacuum analyze");
  await database.query("checkpoint");
  return tables;
}

/** Of the month of this time, unless the migrations have created it. */
async function createPartition(database: BenchDatabase, atMs: number): Promise<void> {
  const month = new Date(atMs).toISOString().slice(0, 7);
  const nextMonth = new Date(startOfNextMonth(atMs)).toISOString();
  await database.query(`
    create table if not exists booking_events_${month.replace("-", "_")} partition of booking_events
      for values from (first_event_id('${month}-01Z')) to (first_event_id('${nextMonth}'))`);
}

function startOfNextMonth(atMs: number): number {
  const date = new Date(atMs);
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1);
}

function toReference(booking: number): string {
  return `TRIP-${booking}`;
}

/** As in the SQL below. */
function toArrivalDate(event: number): string {
  return new Date(Date.UTC(2026, 0, 1 + (event % arrivalDays))).toISOString().slice(0, 10);
}

const arrivalDays = 730;

/** Functions that say what the n-th event is, from 0. */
function createSource({ events, bookings, payload, startMs, intervalMs }: FilledTables): string {
  const common = JSON.stringify(payload).replaceAll("'", "''");
  return `
    create function pg_temp.time_of(n bigint) returns bigint language sql immutable
      return ${startMs} + floor(n * ${intervalMs}::float8)::bigint;
    create function pg_temp.id_of(n bigint) returns uuid language sql immutable
      return (lpad(to_hex(pg_temp.time_of(n)), 12, '0') || '7000' || '8' || substring(md5(n::text), 1, 15))::uuid;
    create function pg_temp.source(first bigint, last bigint) returns table (
      n bigint, id uuid, kind text, reference text, booking_key bytea, sequence bigint, received_at timestamptz,
      revision integer, previous_id uuid, payload jsonb, digest bytea, created_at timestamptz
    ) language sql as $$
      select n, pg_temp.id_of(n), case when n < ${bookings} then 'create' else 'update' end, reference,
        sha256('acme'::bytea || '\\x00'::bytea || convert_to(reference, 'UTF8')), pg_temp.time_of(n) * 1000 + n % 1000,
        to_timestamp(pg_temp.time_of(n) / 1000.0), (n / ${bookings})::integer + 1,
        case when n >= ${bookings} then pg_temp.id_of(n - ${bookings}) end,
        '${common}'::jsonb || jsonb_build_object('consumerTripPartnerExternalReference', reference,
          'consumerTripVenueName', 'Venue ' || n, 'consumerEmail', 'guest' || n % ${bookings} || '@example.com',
          'consumerTripArrivalDate', (date '2026-01-01' + (n % ${arrivalDays})::integer)::text),
        substring(sha256(n::text::bytea) for 16), to_timestamp(pg_temp.time_of(n % ${bookings}) / 1000.0)
      from generate_series(first, last) as n, lateral (select 'TRIP-' || n % ${bookings} as reference)
      where n < ${events}
    $$`;
}

function insertEvents(source: string): string {
  return `
    insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
      content_digest, outcome, received_at, state_after, keyless_sequence_after)
    select id, 'acme', kind, 'trip', reference, booking_key, sequence, payload, digest, kind || 'd', received_at,
      'active', sequence
    from pg_temp.${source}`;
}

function insertChanges(source: string): string {
  return `
    insert into booking_changes (id, partner, reference_kind, reference, revision, change, event_id, sequence,
      previous_event_id, changed_at)
    select n + 1, 'acme', 'trip', reference, revision, kind || 'd', id, sequence, previous_id, received_at
    from pg_temp.${source}`;
}

function insertBookings(source: string): string {
  return `
    insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, payload,
      content_digest, content_event_id, content_sequence, last_sequence, revision, created_at, updated_at, guest_hashes,
      arrival_date, arrival_at, return_date, return_at, destination_country, destination_airport)
    select booking_key, 'acme', 'trip', reference, 'active', id, sequence, payload, digest, id, sequence, sequence,
      revision, created_at, received_at, array[hashtextextended('e' || n, 0), hashtextextended('p' || n, 0)],
      trip.*
    from pg_temp.${source}, booking_trip(payload) as trip
    where revision = ${eventsPerBooking}`;
}

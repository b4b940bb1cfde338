import { migrate } from "@booking-events/store";
import { deriveColumns, toColumnName } from "@booking-events/store/tables/content-columns";
import type { BenchDatabase } from "./data-services.ts";
import { firstReceivedAtMs } from "./fill-queue.ts";
import { fullBooking } from "./sample-events.ts";

const eventsPerBooking = 4;
const eventsPerStatement = 100_000;
const spanMs = 360 * 24 * 60 * 60 * 1_000;

/** A partner that has sent nothing for eleven months. The first bookings are its. */
export const silentPartner = "silent";
const silentBookings = 10;
/** One booking of so many is deleted at the end. */
const bookingsPerDelete = 5_000;
/** The distance of a booking's events is this part of the year: ten days. */
const distance = 1 / 36;

export interface FilledTables {
  events: number;
  bookings: number;
  /** Of a booking that has all its events, by its number from 0. */
  reference: (booking: number) => string;
  /** Of a booking's guest. */
  email: (booking: number) => string;
  /** Of a booking's last event, as sent. */
  arrivalDate: (booking: number) => string;
  /** When the first event was received. Each later one follows at the same distance. */
  startMs: number;
  intervalMs: number;
}

/**
 * Fills the tables as the worker would have in a year: each booking is created, and then updated or deleted three times,
 * ten days apart. So a quarter of the events of nearly each month are creates. Late and repeated events are missing.
 */
export async function fillTables(database: BenchDatabase, events: number): Promise<FilledTables> {
  const bookings = events / eventsPerBooking;
  const startMs = firstReceivedAtMs - spanMs;
  const intervalMs = spanMs / events;
  const times = { events, bookings, startMs, intervalMs };
  const arrivalDate = (booking: number) => toArrivalDate(eventOf(booking, eventsPerBooking - 1, bookings));
  const tables = { ...times, reference: toReference, email: toEmail, arrivalDate };
  await migrate(database.url);
  await database.query("set synchronous_commit = off");
  for (let at = startMs; at < firstReceivedAtMs; at = startOfNextMonth(at)) await createPartition(database, at);
  await database.query(createSource(tables));
  for (let first = 0; first < events; first += eventsPerStatement) {
    const source = `source(${first}, ${Math.min(first + eventsPerStatement, events) - 1})`;
    await database.query(insertEvents(source));
    await database.query(insertChanges(source));
    await database.query(insertBookings(source));
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

function toEmail(booking: number): string {
  return `guest${booking}@example.com`;
}

/** As in the SQL below. */
function toArrivalDate(event: number): string {
  return new Date(Date.UTC(2026, 0, 1 + (event % arrivalDays))).toISOString().slice(0, 10);
}

const arrivalDays = 730;

/**
 * Event 4i + j is the one with j distances since the first of booking i, and of the bookings at the end of the year, the
 * events that would be in the next year are at the beginning of this one. As in the SQL below.
 *
 * @param revision from 0
 */
function eventOf(booking: number, revision: number, bookings: number): number {
  const lag = Math.floor(bookings * distance);
  const wrapped = [0, 1, 2, 3].filter((turn) => booking + turn * lag >= bookings).length;
  const turn = (revision + eventsPerBooking - wrapped) % eventsPerBooking;
  return eventsPerBooking * ((booking + turn * lag) % bookings) + turn;
}

/** @returns the number of one of the bookings that is not the silent partner's */
export function anyBooking({ bookings }: FilledTables): number {
  return silentBookings + Math.floor(Math.random() * (bookings - silentBookings));
}

/** Functions that say what the n-th event is, from 0. */
function createSource({ events, bookings, startMs, intervalMs }: FilledTables): string {
  const common = JSON.stringify(fullBooking).replaceAll("'", "''");
  const lag = Math.floor(bookings * distance);
  return `
    create function pg_temp.time_of(n bigint) returns bigint language sql immutable
      return ${startMs} + floor(n * ${intervalMs}::float8)::bigint;
    create function pg_temp.id_of(n bigint) returns uuid language sql immutable
      return (lpad(to_hex(pg_temp.time_of(n)), 12, '0') || '7000' || '8' || substring(md5(n::text), 1, 15))::uuid;
    create function pg_temp.booking_of(n bigint) returns bigint language sql immutable
      return (n / 4 + ${bookings} - n % 4 * ${lag}) % ${bookings};
    create function pg_temp.wrapped(booking bigint) returns bigint language sql immutable
      return (booking >= ${bookings})::int + (booking + ${lag} >= ${bookings})::int
        + (booking + 2 * ${lag} >= ${bookings})::int + (booking + 3 * ${lag} >= ${bookings})::int;
    create function pg_temp.event_of(booking bigint, turn bigint) returns bigint language sql immutable
      return (booking + turn * ${lag}) % ${bookings} * 4 + turn;
    create function pg_temp.source(first bigint, last bigint) returns table (
      n bigint, id uuid, partner text, kind text, reference text, booking_key bytea, sequence bigint,
      received_at timestamptz, revision integer, previous_id uuid, payload jsonb, digest bytea, created_at timestamptz,
      booking_id uuid
    ) language sql as $$
      select n, pg_temp.id_of(n), partner,
        case when revision = 1 then 'create'
          when revision = 4 and booking % ${bookingsPerDelete} = ${bookingsPerDelete} - 1 then 'delete' else 'update' end,
        reference, sha256(partner::bytea || '\\x00'::bytea || convert_to(reference, 'UTF8')),
        pg_temp.time_of(n) * 1000 + n % 1000, to_timestamp(pg_temp.time_of(n) / 1000.0), revision,
        case when revision > 1 then pg_temp.id_of(pg_temp.event_of(booking, (n % 4 + 3) % 4)) end,
        '${common}'::jsonb || jsonb_build_object('consumerTripPartnerExternalReference', reference,
          'consumerTripVenueName', 'Venue ' || n, 'consumerEmail', 'guest' || booking || '@example.com',
          'consumerTripArrivalDate', (date '2026-01-01' + (n % ${arrivalDays})::integer)::text),
        substring(sha256(n::text::bytea) for 16),
        to_timestamp(pg_temp.time_of(pg_temp.event_of(booking, (4 - wrapped) % 4)) / 1000.0), md5(booking::text)::uuid
      from generate_series(first, last) as n, lateral (select pg_temp.booking_of(n) as booking),
        lateral (select pg_temp.wrapped(booking) as wrapped),
        lateral (
          select 'TRIP-' || booking as reference, ((n % 4 + wrapped) % 4 + 1)::integer as revision,
            case when booking < ${silentBookings} then '${silentPartner}' else 'acme' end as partner
        )
      where n < ${events}
    $$`;
}

function insertEvents(source: string): string {
  return `
    insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
      content_digest, outcome, received_at, state_after, newest_keyless_sequence)
    select id, partner, kind, 'trip', reference, booking_key, sequence, payload, digest, kind || 'd', received_at,
      case kind when 'delete' then 'deleted' else 'active' end, sequence
    from pg_temp.${source}`;
}

function insertChanges(source: string): string {
  return `
    insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence,
      previous_event_id, changed_at)
    select n + 1, booking_id, partner, 'trip', reference, revision, kind || 'd', id, sequence, previous_id, received_at
    from pg_temp.${source}`;
}

function insertBookings(source: string): string {
  const contents = contentsInSql();
  return `
    insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence, payload,
      content_digest, content_event_id, newest_keyless_sequence, last_sequence, revision, created_at, updated_at,
      deleted_at, guest_hashes, ${Object.keys(contents).join(", ")})
    select booking_key, booking_id, partner, 'trip', reference, case kind when 'delete' then 'deleted' else 'active' end, id,
      sequence, payload, digest, id, sequence, sequence, revision, created_at, received_at,
      case kind when 'delete' then received_at end,
      array[hashtextextended('e' || n, 0), hashtextextended('p' || n, 0)], ${Object.values(contents).join(", ")}
    from pg_temp.${source}
    where revision = ${eventsPerBooking}`;
}

/** The columns of `bookings` that follow from the payload, by their names, as SQL of the source. */
function contentsInSql(): Record<string, string> {
  const columns = deriveColumns(
    { partner: "acme", referenceKind: "trip" },
    { payload: fullBooking, defaultCountry: null },
  );
  return {
    ...Object.fromEntries(Object.entries(columns).map(([key, value]) => [toColumnName(key), toLiteral(value)])),
    consumer_email: "payload ->> 'consumerEmail'",
    consumer_trip_arrival_date: "(payload ->> 'consumerTripArrivalDate')::date",
    consumer_trip_arrival_at: "null",
  };
}

function toLiteral(value: unknown): string {
  return typeof value === "string" ? `'${value.replaceAll("'", "''")}'` : String(value);
}

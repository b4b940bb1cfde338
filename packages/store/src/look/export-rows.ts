import type { Queryable } from "../connect/queryable.ts";
import { allowLongStatements } from "../connect/transaction-limits.ts";
import { firstIdAt } from "../tables/event-ids.ts";
import { eventDetails } from "./list-events.ts";

export interface ExportFilter {
  partner?: string | undefined;
  /** Of an event, when it was received; of a booking, when the event was received that decided its state. */
  since?: Date | undefined;
  until?: Date | undefined;
}

/** The payload is JSON text, with the digits of numbers that the partner sent. */
export type ExportedRow = Record<string, unknown> & { payload?: string | null };

/** So many payloads are in memory at a time. */
const rowsTogether = 200;
/** There may be ten million rows between two of a partner that sends little. */
const fetchTimeoutMs = 600_000;
/** How long the reader of the output may take for a page. The snapshot keeps PostgreSQL from removing old rows. */
const idleTimeoutMs = 600_000;

/** What is exported of each booking, as far as it says nothing about a person. */
const bookingColumns = `booking_id as "bookingId", partner, reference_kind as "referenceKind", reference, state, revision,
  sequence, created_at as "createdAt", updated_at as "updatedAt", deleted_at as "deletedAt", erased_at as "erasedAt",
  consumer_trip_arrival_date::text as "arrivalDate", consumer_trip_return_date::text as "returnDate",
  consumer_trip_destination_country_code as "destinationCountry",
  consumer_trip_destination_airport_code as "destinationAirport"`;

/** Yields bookings by partner in the order of their creation, some at a time. Call it in a read-only snapshot. */
export function exportBookings(
  client: Queryable,
  { partner, since, until }: ExportFilter,
  withPayload: boolean,
): AsyncGenerator<ExportedRow[]> {
  return readInPages(
    client,
    `select ${bookingColumns}${withPayload ? ", payload::text as payload" : ""}
     from bookings
     where ($1::text is null or partner = $1) and ($2::timestamptz is null or updated_at >= $2)
       and ($3::timestamptz is null or updated_at < $3)
     order by partner, created_at, booking_key`,
    [partner ?? null, since ?? null, until ?? null],
  );
}

/** Yields events in the order of their ids, some at a time. Call it in a read-only snapshot. */
export function exportEvents(
  client: Queryable,
  { partner, since, until }: ExportFilter,
  withPayload: boolean,
): AsyncGenerator<ExportedRow[]> {
  return readInPages(
    client,
    `select ${eventDetails}${withPayload ? ", payload::text as payload" : ""}
     from booking_events
     where ($1::text is null or partner = $1) and id >= $2 and ($3::uuid is null or id < $3)
     order by id`,
    [partner ?? null, firstIdAt(since ?? new Date(0)), until === undefined ? null : firstIdAt(until)],
  );
}

async function* readInPages(client: Queryable, query: string, values: unknown[]): AsyncGenerator<ExportedRow[]> {
  await client.query(`set local idle_in_transaction_session_timeout to ${idleTimeoutMs}`);
  // The first rows are wanted soon, so PostgreSQL follows an index instead of sorting all rows.
  await client.query("set local cursor_tuple_fraction to 0.00001");
  await client.query(`declare exported no scroll cursor for ${query}`, values);
  const patient = await allowLongStatements(client, fetchTimeoutMs);
  for (;;) {
    const { rows } = await patient.query<ExportedRow>(`fetch ${rowsTogether} from exported`);
    if (rows.length === 0) return;
    yield rows;
  }
}

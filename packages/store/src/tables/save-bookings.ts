import { bigints, booleans, byteas, integers, texts, timestamps, uuids } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import { settleAll } from "../connect/settle-all.ts";
import type { StoredBooking } from "./bookings.ts";
import { monthsOfIds } from "./event-ids.ts";
import { type Trip, tripColumns } from "./trip.ts";
import { wasFirst } from "./was-first.ts";

export interface BookingToSave extends Omit<StoredBooking, "feedEventId" | "guestHashes" | "isContentRemoved"> {
  /** Undefined: the stored ones stay, or there are none. */
  guestHashes?: readonly string[] | undefined;
  /**
   * Keep the stored payload, since the content is the same. Otherwise the booking gets the content's event's payload.
   */
  keepsPayload: boolean;
  /** Of the content. Null: PostgreSQL reads it from the payload. */
  trip: Trip | null;
}

/**
 * @returns false if another transaction has inserted one of the bookings since {@link lockBookings}. Roll back, and
 *   begin again
 */
export function insertBookings(client: Queryable, bookings: BookingToSave[]): Promise<boolean> {
  // In the order of the keys, like the locks: two transactions with the same new bookings wait, and never deadlock.
  const sorted = bookings.toSorted((a, b) => Buffer.compare(a.bookingKey, b.bookingKey));
  const inserted = client.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, content_digest,
       content_event_id, content_sequence, last_sequence, revision, created_at, updated_at, deleted_at, guest_hashes,
       payload, booking_id, ${tripColumns.join(", ")})
     select booking_key, partner, reference_kind, reference, state, event_id, sequence, content_digest,
       content_event_id, content_sequence, last_sequence, revision, created_at, updated_at, deleted_at,
       coalesce(string_to_array(guest_hashes, ' ')::bigint[], '{}'), ${payloadOfContent}, booking_id,
       ${tripColumns.join(", ")}
     from ${changedRows}`,
    toColumns(sorted),
  );
  return wasFirst(settleAll([inserted, fillTrips(client, bookings)]));
}

/** The bookings must be locked by this transaction. */
export async function updateBookings(client: Queryable, bookings: BookingToSave[]): Promise<void> {
  const updated = client.query(
    `update bookings set
       state = changed.state,
       event_id = changed.event_id,
       feed_event_id = case when changed.revision = bookings.revision
         then nullif(coalesce(bookings.feed_event_id, bookings.event_id), changed.event_id) end,
       sequence = changed.sequence,
       content_digest = changed.content_digest,
       content_event_id = changed.content_event_id,
       content_sequence = changed.content_sequence,
       last_sequence = changed.last_sequence,
       revision = changed.revision,
       created_at = changed.created_at,
       updated_at = changed.updated_at,
       deleted_at = changed.deleted_at,
       content_removed_at = null,
       guest_hashes = coalesce(string_to_array(changed.guest_hashes, ' ')::bigint[], bookings.guest_hashes),
       payload = case when changed.keeps_payload then bookings.payload else ${payloadOfContent} end,
       ${tripColumns
         .map((name) => `${name} = case when changed.keeps_payload then bookings.${name} else changed.${name} end`)
         .join(",\n       ")}
     from ${changedRows}
     where bookings.booking_key = changed.booking_key`,
    toColumns(bookings),
  );
  await settleAll([updated, fillTrips(client, bookings)]);
}

/** Has PostgreSQL read what {@link BookingToSave.trip} lacks. */
async function fillTrips(client: Queryable, bookings: BookingToSave[]): Promise<void> {
  const unread = bookings.filter(
    ({ trip, keepsPayload, state }) => trip === null && !keepsPayload && state.content !== null,
  );
  if (unread.length === 0) return;
  await client.query(
    `update bookings set (${tripColumns.join(", ")}) = (select * from booking_trip(payload))
     where booking_key = any($1::bytea[])`,
    [unread.map(({ bookingKey }) => bookingKey)],
  );
}

/**
 * With the bounds of {@link toColumns}, PostgreSQL leaves out partitions before it runs the query: when it plans it, or,
 * if it is prepared, when it begins.
 */
const payloadOfContent = `(
         select payload from booking_events where id = changed.content_event_id and id >= $22 and id < $23
       )`;

/** Turns the parameters from {@link toColumns} into rows. PostgreSQL reads every date that partners may send. */
const changedRows = `(
       select sent.*,
         left(arrival, 10)::date as arrival_date,
         case when length(arrival) > 10 then arrival::timestamptz end as arrival_at,
         left(departure, 10)::date as return_date,
         case when length(departure) > 10 then departure::timestamptz end as return_at
       from (
         select unnest($1::bytea[]) as booking_key, unnest($2::text[]) as partner, unnest($3::text[]) as reference,
           unnest($4::text[]) as state, unnest($5::uuid[]) as event_id, unnest($6::bigint[]) as sequence,
           unnest($7::bytea[]) as content_digest, unnest($8::bigint[]) as content_sequence,
           unnest($9::bigint[]) as last_sequence, unnest($10::timestamptz[]) as created_at,
           unnest($11::timestamptz[]) as updated_at, unnest($12::timestamptz[]) as deleted_at,
           unnest($13::uuid[]) as content_event_id, unnest($14::boolean[]) as keeps_payload,
           unnest($15::text[]) as reference_kind, unnest($16::integer[]) as revision,
           unnest($17::text[]) as guest_hashes, unnest($18::text[]) as arrival, unnest($19::text[]) as departure,
           unnest($20::text[]) as destination_country, unnest($21::text[]) as destination_airport,
           unnest($24::uuid[]) as booking_id
       ) as sent
     ) as changed`;

function toColumns(bookings: BookingToSave[]): (Buffer | string)[] {
  const states = bookings.map(({ state }) => state);
  const contents = states.map(({ content }) => content);
  const lookups = bookings
    .filter(({ keepsPayload }) => !keepsPayload)
    .flatMap(({ state: { content } }) => content ?? []);
  return [
    byteas(bookings.map(({ bookingKey }) => bookingKey)),
    texts(bookings.map(({ partner }) => partner)),
    texts(bookings.map(({ reference }) => reference)),
    texts(states.map(({ state }) => state)),
    uuids(states.map(({ eventId }) => eventId)),
    bigints(states.map(({ sequence }) => sequence)),
    byteas(contents.map((content) => content && Buffer.from(content.digest, "hex"))),
    bigints(contents.map((content) => content?.newestKeylessSequence ?? null)),
    bigints(states.map(({ lastSequence }) => lastSequence)),
    timestamps(states.map(({ createdAt }) => createdAt)),
    timestamps(states.map(({ updatedAt }) => updatedAt)),
    timestamps(states.map(({ deletedAt }) => deletedAt)),
    uuids(contents.map((content) => content?.eventId ?? null)),
    booleans(bookings.map(({ keepsPayload }) => keepsPayload)),
    texts(bookings.map(({ referenceKind }) => referenceKind)),
    integers(bookings.map(({ revision }) => revision)),
    texts(bookings.map(({ guestHashes }) => guestHashes?.join(" ") ?? null)),
    texts(bookings.map(({ trip }) => trip?.arrival ?? null)),
    texts(bookings.map(({ trip }) => trip?.return ?? null)),
    texts(bookings.map(({ trip }) => trip?.country ?? null)),
    texts(bookings.map(({ trip }) => trip?.airport ?? null)),
    ...monthsOfIds(lookups.map(({ eventId }) => eventId)),
    uuids(bookings.map(({ bookingId }) => bookingId)),
  ];
}

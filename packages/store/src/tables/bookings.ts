import type { BookingState } from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import { byteas } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";

export interface BookingIdentity {
  /** See {@link bookingKey}. */
  bookingKey: Buffer;
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
}

/** A booking without its payload. The log has the payload too. */
export interface StoredBooking extends BookingIdentity {
  /** Random. The booking keeps it for good, over its erasure too. */
  bookingId: string;
  state: BookingState;
  /**
   * The event that the feed named last for the booking. It is another than that of the state if a late event with the
   * same content has decided that: readers were told nothing, since nothing changed for them.
   */
  feedEventId: string;
  revision: number;
  /** See {@link hashContacts}. */
  guestHashes: readonly string[];
  /** By which its content is read: see `booking_events.default_country`. */
  defaultCountry: string | null;
  /** The booking is deleted, and has only the digest of its content. */
  isContentRemoved: boolean;
}

/** What happens if another transaction has locked a booking: `wait` for the lock, or `fail` with SQLSTATE 55P03. */
export type IfLocked = "wait" | "fail";

/**
 * Locks the bookings that exist, until the transaction ends. All transactions lock in the same order, so they never
 * deadlock. The keys come from a subquery, because the planner would estimate each key that it sees.
 */
export async function lockBookings(
  client: Queryable,
  bookingKeys: Buffer[],
  ifLocked: IfLocked = "wait",
): Promise<StoredBooking[]> {
  const { rows } = await client.query<BookingRow>(
    `select ${rowColumns}
     from bookings
     where booking_key = any((select $1::bytea[])::bytea[])
     order by booking_key
     for update ${ifLocked === "fail" ? "nowait" : ""}`,
    [byteas(bookingKeys)],
  );
  return rows.map(toStoredBooking);
}

/**
 * Reads bookings in the order of their keys. Erased ones are left out.
 *
 * @param filter.after the key of the last booking that was read; undefined: start with the first one
 */
export async function readBookings(
  client: Queryable,
  filter: {
    partner?: string | undefined;
    bookingKeys?: Buffer[] | undefined;
    after?: Buffer | undefined;
    limit: number;
  },
): Promise<StoredBooking[]> {
  // Planned for any keys, one condition for both would read all bookings.
  const areMeant = filter.bookingKeys === undefined ? "$2::bytea[] is null" : "booking_key = any($2)";
  const { rows } = await client.query<BookingRow>(
    `select ${rowColumns}
     from bookings
     where ($1::text is null or partner = $1) and ${areMeant} and ($3::bytea is null or booking_key > $3)
       and erased_at is null
     order by booking_key
     limit $4`,
    [filter.partner ?? null, filter.bookingKeys ?? null, filter.after ?? null, filter.limit],
  );
  return rows.map(toStoredBooking);
}

const rowColumns = `booking_key as "bookingKey", booking_id as "bookingId", partner, reference_kind as "referenceKind", reference, state,
       event_id as "eventId", coalesce(feed_event_id, event_id) as "feedEventId", sequence,
       content_digest as "contentDigest", content_event_id as "contentEventId",
       newest_keyless_sequence as "newestKeylessSequence",
       content_removed_at is not null as "isContentRemoved", last_sequence as "lastSequence", revision,
       array_to_string(guest_hashes, ' ') as "guestHashes", created_at as "createdAt", updated_at as "updatedAt",
       deleted_at as "deletedAt", default_country as "defaultCountry"`;

interface BookingRow extends BookingIdentity, Omit<BookingState, "content"> {
  bookingId: string;
  feedEventId: string;
  revision: number;
  guestHashes: string;
  defaultCountry: string | null;
  isContentRemoved: boolean;
  contentDigest: Buffer | null;
  contentEventId: string | null;
  newestKeylessSequence: number | null;
}

function toStoredBooking(row: BookingRow): StoredBooking {
  return {
    bookingKey: row.bookingKey,
    bookingId: row.bookingId,
    partner: row.partner,
    referenceKind: row.referenceKind,
    reference: row.reference,
    feedEventId: row.feedEventId,
    revision: row.revision,
    defaultCountry: row.defaultCountry,
    isContentRemoved: row.isContentRemoved,
    guestHashes: row.guestHashes.split(" ").filter(Boolean),
    state: {
      state: row.state,
      eventId: row.eventId,
      sequence: row.sequence,
      content: contentOf(row),
      lastSequence: row.lastSequence,
      createdAt: row.createdAt,
      updatedAt: row.updatedAt,
      deletedAt: row.deletedAt,
    },
  };
}

function contentOf({ contentDigest, contentEventId, newestKeylessSequence }: BookingRow): BookingState["content"] {
  if (contentDigest === null || contentEventId === null) return null;
  return { digest: contentDigest.toString("hex"), eventId: contentEventId, newestKeylessSequence };
}

/** @returns the keys of the bookings that another transaction has locked at the moment */
export async function findLockedBookings(client: Queryable, bookingKeys: Buffer[]): Promise<Buffer[]> {
  const { rows } = await client.query<{ bookingKey: Buffer }>(
    `with free as (select booking_key from bookings where booking_key = any($1) for update skip locked)
     select booking_key as "bookingKey"
     from bookings
     where booking_key = any($1) and booking_key not in (select booking_key from free)`,
    [bookingKeys],
  );
  return rows.map(({ bookingKey }) => bookingKey);
}

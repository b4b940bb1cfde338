import { bigints, byteas, integers, texts, timestamps, uuids } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import { settleAll } from "../connect/settle-all.ts";
import { readContents } from "./booking-events.ts";
import type { StoredBooking } from "./bookings.ts";
import { assign, type Column, column, encode, toRows } from "./columns.ts";
import { contentColumns, deriveColumns, type SentContent } from "./content-columns.ts";
import { monthsOfIds } from "./event-ids.ts";
import { wasFirst } from "./was-first.ts";

export interface BookingToSave
  extends Omit<StoredBooking, "feedEventId" | "guestHashes" | "isContentRemoved" | "defaultCountry"> {
  /** Undefined: the stored ones stay, or there are none. */
  guestHashes?: readonly string[] | undefined;
  /**
   * What the event sent that the content is from. Null: there is no content, or the log no longer has it. `kept`: what
   * the booking holds stays, since the content is the same.
   */
  newContent: SentContent | "kept" | null;
}

/** `logged`: {@link readLogged} has still to read it from the log. */
export interface PlannedBooking extends Omit<BookingToSave, "newContent"> {
  newContent: BookingToSave["newContent"] | "logged";
}

/** Reads the contents that only the log has. */
export async function readLogged(client: Queryable, bookings: PlannedBooking[]): Promise<BookingToSave[]> {
  const idOf = ({ state }: PlannedBooking) => state.content?.eventId ?? "";
  const logged = bookings.filter(({ newContent, state }) => newContent === "logged" && state.content !== null);
  const contents = await readContents(client, logged.map(idOf));
  return bookings.map((booking) => ({
    ...booking,
    newContent: booking.newContent === "logged" ? (contents.get(idOf(booking)) ?? null) : booking.newContent,
  }));
}

/**
 * @returns false if another transaction has inserted one of the bookings since {@link lockBookings}. Roll back, and
 *   begin again
 */
export function insertBookings(client: Queryable, bookings: BookingToSave[]): Promise<boolean> {
  // In the order of the keys, like the locks: two transactions with the same new bookings wait, and never deadlock.
  const sorted = bookings.toSorted((a, b) => Buffer.compare(a.bookingKey, b.bookingKey));
  return wasFirst(
    client.query(insertion, [
      ...encode(identityColumns, sorted),
      ...encode(stateColumns, sorted),
      ...encodeContents(sorted),
    ]),
  );
}

/** The bookings must be locked by this transaction. */
export async function updateBookings(client: Queryable, bookings: BookingToSave[]): Promise<void> {
  const kept = bookings.filter(({ newContent }) => newContent === "kept");
  const replaced = bookings.filter(({ newContent }) => newContent !== "kept");
  const updates: Promise<unknown>[] = [];
  if (kept.length > 0) updates.push(client.query(stateUpdate, encode(stateColumns, kept)));
  if (replaced.length > 0)
    updates.push(client.query(contentUpdate, [...encode(stateColumns, replaced), ...encodeContents(replaced)]));
  await settleAll(updates);
}

const identityColumns: Column<BookingToSave>[] = [
  column("booking_id", "uuid", uuids, ({ bookingId }) => bookingId),
  column("partner", "text", texts, ({ partner }) => partner),
  column("reference_kind", "text", texts, ({ referenceKind }) => referenceKind),
  column("reference", "text", texts, ({ reference }) => reference),
];

const stateColumns: Column<BookingToSave>[] = [
  column("booking_key", "bytea", byteas, ({ bookingKey }) => bookingKey),
  column("state", "text", texts, ({ state }) => state.state),
  column("event_id", "uuid", uuids, ({ state }) => state.eventId),
  column("sequence", "bigint", bigints, ({ state }) => state.sequence),
  column("content_digest", "bytea", byteas, ({ state: { content } }) => content && Buffer.from(content.digest, "hex")),
  column("content_event_id", "uuid", uuids, ({ state: { content } }) => content?.eventId ?? null),
  column(
    "newest_keyless_sequence",
    "bigint",
    bigints,
    ({ state: { content } }) => content?.newestKeylessSequence ?? null,
  ),
  column("last_sequence", "bigint", bigints, ({ state }) => state.lastSequence),
  column("revision", "integer", integers, ({ revision }) => revision),
  column("created_at", "timestamptz", timestamps, ({ state }) => state.createdAt),
  column("updated_at", "timestamptz", timestamps, ({ state }) => state.updatedAt),
  column("deleted_at", "timestamptz", timestamps, ({ state }) => state.deletedAt),
  // An array of arrays would need arrays of one length.
  column("guest_hash_list", "text", texts, ({ guestHashes }) => guestHashes?.join(" ") ?? null),
];

/** The parameters of the content's columns, and the months of the events that have the payloads. */
function encodeContents(bookings: readonly BookingToSave[]): (Buffer | string)[] {
  const contents = bookings.map((booking) =>
    deriveColumns(booking, booking.newContent === "kept" ? null : booking.newContent),
  );
  const eventIds = bookings.flatMap(({ state: { content } }) => content?.eventId ?? []);
  return [...encode(contentColumns, contents), ...monthsOfIds(eventIds)];
}

const updatedNames = stateColumns.map(({ name }) => name).filter((name) => name !== "guest_hash_list");
const contentNames = contentColumns.map(({ name }) => name);
const insertedNames = [...identityColumns.map(({ name }) => name), ...updatedNames, ...contentNames].join(", ");

const derivedFromStored = `
    feed_event_id = case when changed.revision = bookings.revision
      then nullif(coalesce(bookings.feed_event_id, bookings.event_id), changed.event_id) end,
    guest_hashes = coalesce(string_to_array(changed.guest_hash_list, ' ')::bigint[], bookings.guest_hashes),
    content_removed_at = null`;

const insertion = `
  insert into bookings (${insertedNames}, guest_hashes, payload)
  select ${insertedNames}, coalesce(string_to_array(guest_hash_list, ' ')::bigint[], '{}'),
    ${payloadOfContent(identityColumns.length + stateColumns.length + contentColumns.length)}
  from ${toRows([...identityColumns, ...stateColumns, ...contentColumns])} as changed`;

const stateUpdate = `
  update bookings set ${assign(updatedNames)},
    ${derivedFromStored}
  from ${toRows(stateColumns)} as changed
  where bookings.booking_key = changed.booking_key`;

const contentUpdate = `
  update bookings set ${assign([...updatedNames, ...contentNames])},
    payload = ${payloadOfContent(stateColumns.length + contentColumns.length)},
    ${derivedFromStored}
  from ${toRows([...stateColumns, ...contentColumns])} as changed
  where bookings.booking_key = changed.booking_key`;

/**
 * The payload is copied within the server. With the months, which are the two parameters after the columns, PostgreSQL
 * leaves out partitions before it runs the query: when it plans it, or, if it is prepared, when it begins.
 */
function payloadOfContent(columns: number): string {
  return `(
      select payload from booking_events
      where id = changed.content_event_id and id >= $${columns + 1} and id < $${columns + 2}
    )`;
}

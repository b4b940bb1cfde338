import type { BookingInput, ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "@booking-events/store";
import { begin } from "./connect.ts";
import { readPosition } from "./feed-position.ts";
import { setPlace } from "./readers.ts";
import type { FeedTables } from "./tables.ts";

/** A booking at the position of the snapshot. */
export interface SnapshotBooking {
  /** The booking's key in your own tables: see `BookingChange`. */
  bookingId: string;
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  state: "active" | "deleted";
  /** Of the booking's newest change. The next one has this plus 1. */
  revision: number;
  /** The event that the booking's newest change names. */
  eventId: string;
  /** The place of the event that decided the state in the order of receipt, in microseconds. */
  sequence: number;
  /** Null: the booking is deleted. */
  payload: BookingInput | null;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

export interface SnapshotContext {
  /** The transaction in which the reader gets its place. Don't commit it or roll it back. */
  client: Queryable;
  /** The id of the last change that the snapshot includes. */
  position: number;
}

/** The consumer's code has failed, and not the connection. The cause is what it threw. */
export class SnapshotFailed extends Error {
  override name = "SnapshotFailed";
}

/** Up to 64 KiB each. */
const bookingsPerPage = 200;

/**
 * Has the consumer delete all that it keeps, and gives it all bookings as they are at one position of the feed, which
 * becomes the reader's place, in one transaction. Does nothing if the reader has a place.
 *
 * @throws SnapshotFailed; what the connection throws: roll all of it back
 */
export async function takeSnapshot(
  client: Queryable,
  options: {
    name: string;
    tables: FeedTables;
    deleteAll: (context: SnapshotContext) => Promise<unknown>;
    onSnapshot: (bookings: SnapshotBooking[], context: SnapshotContext) => Promise<void>;
    handlerTimeoutMs: number;
    signal: AbortSignal;
  },
): Promise<void> {
  const { tables, deleteAll, onSnapshot, handlerTimeoutMs, signal } = options;
  await begin(client, { isolation: "repeatable read", idleTimeoutMs: handlerTimeoutMs });
  const position = (await readPosition(client, tables)).lastId;
  // Before the bookings are read: another follower that begins a snapshot for this reader waits here and then fails, so
  // there is one.
  if (await setPlace(client, options, position)) {
    await give(client, () => deleteAll({ client, position }));
    await client.query(`declare bookings_at_position no scroll cursor for ${selectBookings(tables)}`);
    for (let isEnd = false; !isEnd; ) {
      signal.throwIfAborted();
      const { rows } = await client.query<SnapshotBooking>(`fetch ${bookingsPerPage} from bookings_at_position`);
      isEnd = rows.length < bookingsPerPage;
      if (rows.length > 0) await give(client, () => onSnapshot(rows, { client, position }));
    }
  }
  await client.query("commit");
}

async function give(client: Queryable, toConsumer: () => Promise<unknown>): Promise<void> {
  await client.query("savepoint page");
  try {
    await toConsumer();
    await client.query("release savepoint page");
  } catch (error) {
    // Fails if the connection is gone: then that is the reason.
    await client.query("rollback to savepoint page");
    throw new SnapshotFailed("The snapshot could not be handled.", { cause: error });
  }
}

const selectBookings = ({
  bookings,
}: FeedTables) => `select booking_id as "bookingId", partner, reference_kind as "referenceKind", reference, state, revision,
       coalesce(feed_event_id, event_id) as "eventId", sequence::float8 as sequence, case when state = 'active' then payload end as payload,
       created_at as "createdAt", updated_at as "updatedAt", deleted_at as "deletedAt"
     from ${bookings} where erased_at is null`;

import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { allowLongStatements } from "../connect/transaction-limits.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { lockBookings, type StoredBooking } from "../tables/bookings.ts";
import type { BookingToErase } from "./booking-to-erase.ts";
import type { DigestKey } from "./digest-key.ts";
import { emptyDeadLettersOf } from "./erase-dead-letters.ts";
import { eraseFromFeed } from "./erase-from-feed.ts";
import { type ErasedIdentity, eraseIdentity, findErased, lockOf } from "./erased-bookings.ts";
import { countErased, type ErasedCounts, erasingTimeoutMs } from "./erasures.ts";

/**
 * Erases a booking: its content, its reference, its idempotency keys and its dead letters. A row stays that only a
 * keyed hash identifies. It keeps events from bringing the booking back, those of a booking that was never stored too.
 * Readers of the feed get a change. Erasing it again empties what has come since, such as a dead letter.
 *
 * The locks are taken in the worker's order. An event that a worker applies at the same time is either erased too, or
 * finds that its booking has been erased.
 */
export function eraseBooking(
  pool: pg.Pool,
  key: DigestKey,
  booking: BookingToErase,
  options: { erasureId: string; by: string },
): Promise<ErasedCounts> {
  const plainKey = bookingKey(booking.partner, booking.referenceKind, booking.reference);
  const identity = eraseIdentity(key, plainKey);
  return inTransaction(pool, async (connection) => {
    const client = await allowLongStatements(connection, erasingTimeoutMs);
    await client.query("select pg_advisory_xact_lock($1)", [lockOf(key, plainKey)]);
    const wasErased = (await findErased(client, key, [plainKey])).size > 0;
    const stored = wasErased ? undefined : await lockOrInsert(client, plainKey, booking, identity);
    const counts = {
      events: await emptyEvents(client, plainKey, identity),
      deadLetters: await emptyDeadLettersOf(client, booking, options.by),
      bookings: wasErased ? 0 : await emptyBooking(client, plainKey, identity, stored?.revision ?? -1),
    };
    await countErased(client, options.erasureId, counts);
    // Nobody has heard of a booking that was never stored.
    if (stored !== undefined) await eraseFromFeed(client, stored);
    return counts;
  });
}

/** @returns undefined if there was no such booking */
async function lockOrInsert(
  client: Queryable,
  plainKey: Buffer,
  { partner, referenceKind, event }: BookingToErase,
  { reference }: ErasedIdentity,
): Promise<StoredBooking | undefined> {
  // Under its plain key at first: a worker that inserts the booking at the same time waits for this, or this for it.
  const { rowCount } = await client.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, last_sequence,
       revision, created_at, updated_at, deleted_at)
     values ($1, $2, $3, $4, 'deleted', $5, $6, $6, 0, $7, $7, $7)
     on conflict (booking_key) do nothing`,
    [plainKey, partner, referenceKind, reference, event.id, event.sequence, event.receivedAt],
  );
  const [booking] = await lockBookings(client, [plainKey]);
  return rowCount === 1 ? undefined : booking;
}

async function emptyEvents(client: Queryable, plainKey: Buffer, identity: ErasedIdentity): Promise<number> {
  const { rowCount } = await client.query(
    `update booking_events set booking_key = $2, reference = $3, payload = null, content_digest = null,
       idempotency_key = null
     where booking_key = $1`,
    [plainKey, identity.bookingKey, identity.reference],
  );
  return rowCount ?? 0;
}

/** What stays of an erased booking besides its columns that are never null. */
const keptColumns = ["deleted_at", "erased_at", "guest_hashes"];

async function emptyBooking(
  client: Queryable,
  plainKey: Buffer,
  identity: ErasedIdentity,
  revisionBefore: number,
): Promise<number> {
  // Columns that are added later are emptied too.
  const { rows: columns } = await client.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
     where attrelid = 'bookings'::regclass and attnum > 0 and not attisdropped and not attnotnull
       and attgenerated = '' and attname <> all ($1)`,
    [keptColumns],
  );
  const { rowCount } = await client.query(
    `update bookings set booking_key = $2, reference = $3, state = 'deleted', revision = $4,
       deleted_at = coalesce(deleted_at, now()), erased_at = now(), guest_hashes = '{}',
       ${columns.map(({ name }) => `${name} = null`).join(", ")}
     where booking_key = $1`,
    [plainKey, identity.bookingKey, identity.reference, revisionBefore + 1],
  );
  return rowCount ?? 0;
}

import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { allowLongStatements } from "../connect/transaction-limits.ts";
import { appendChanges } from "../tables/booking-changes.ts";
import type { StoredBooking } from "../tables/bookings.ts";
import type { BookingToErase } from "./booking-to-erase.ts";
import { erasingTimeoutMs } from "./erasures.ts";

export interface ChangesOf {
  ids: number[];
  /** Changes after this one have not been looked at. */
  upTo: number;
}

/**
 * Finds the changes of bookings in the feed. No index leads from a booking to its changes, since nothing else needs
 * one: this reads the whole feed once.
 *
 * @returns the changes of each booking, in the same order
 */
export function findChangesOf(pool: pg.Pool, bookings: readonly BookingToErase[]): Promise<ChangesOf[]> {
  return inTransaction(pool, async (connection) => {
    const client = await allowLongStatements(connection, erasingTimeoutMs);
    const { rows: positions } = await client.query<{ upTo: number }>(`select last_id as "upTo" from feed_position`);
    const upTo = positions[0]?.upTo ?? 0;
    const { rows } = await client.query<{ number: number; id: number }>(
      `select wanted.number::int, id
       from unnest($1::text[], $2::text[], $3::text[]) with ordinality
         as wanted (partner, reference_kind, reference, number)
       join booking_changes using (partner, reference_kind, reference)
       where id <= $4`,
      [
        bookings.map(({ partner }) => partner),
        bookings.map(({ referenceKind }) => referenceKind),
        bookings.map(({ reference }) => reference),
        upTo,
      ],
    );
    const byBooking = Map.groupBy(rows, ({ number }) => number);
    return bookings.map((_, index) => ({ ids: (byBooking.get(index + 1) ?? []).map(({ id }) => id), upTo }));
  });
}

/** The changes keep the booking's id, by which readers find what they have to erase. */
export async function eraseFromFeed(
  client: Queryable,
  { partner, referenceKind, reference }: BookingToErase,
  { stored, feed }: { stored: StoredBooking | undefined; feed: ChangesOf },
): Promise<void> {
  // Two statements, since one would read the whole feed.
  await client.query("update booking_changes set reference = null where id = any($1)", [feed.ids]);
  await client.query(
    `update booking_changes set reference = null
     where id > $1 and partner = $2 and reference_kind = $3 and reference = $4`,
    [feed.upTo, partner, referenceKind, reference],
  );
  // Nobody has heard of a booking that was never stored.
  if (stored === undefined) return;
  await appendChanges(client, [
    {
      bookingId: stored.bookingId,
      partner,
      referenceKind,
      reference: null,
      revision: stored.revision + 1,
      change: "erased",
      eventId: stored.state.eventId,
      sequence: stored.state.sequence,
      previousEventId: stored.feedEventId,
    },
  ]);
}

import type { Change } from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import { type Queryable, settleAll } from "./database.ts";

export interface ChangeToInsert {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  change: Change;
  /** The event that decided the new state. */
  eventId: string;
  sequence: number;
}

/** Any number that no other advisory lock of this database uses. */
const feedLock = 7_245_113_001;

/**
 * Appends to the feed. Call it last in the transaction: from here to the commit no other transaction appends, so that
 * ids become visible in their order, and a reader who asks for `id > last` never misses a row.
 */
export async function appendChanges(client: Queryable, changes: ChangeToInsert[]): Promise<void> {
  const locking = client.query("select pg_advisory_xact_lock($1)", [feedLock]);
  const appending = client.query(
    `insert into booking_changes (partner, reference, change, event_id, sequence, reference_kind)
     select * from unnest($1::text[], $2::text[], $3::text[], $4::uuid[], $5::bigint[], $6::text[])`,
    [
      changes.map(({ partner }) => partner),
      changes.map(({ reference }) => reference),
      changes.map(({ change }) => change),
      changes.map(({ eventId }) => eventId),
      changes.map(({ sequence }) => sequence),
      changes.map(({ referenceKind }) => referenceKind),
    ],
  );
  await settleAll([locking, appending]);
}

/** A change as a reader of the feed gets it. */
export interface BookingChange {
  id: number;
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  change: Change;
  eventId: string;
  sequence: number;
  changedAt: Date;
  /** What the booking holds from now on; null: it is deleted. */
  payload: unknown;
}

/**
 * Reads the feed: pass the id of the last change that you have dealt with, 0 at first. Applying the changes in the order
 * of their ids gives every booking's state; a later change of a booking always overrides an earlier one, even where its
 * sequence is lower (a correction after a late event). A booking may be said to be deleted twice.
 *
 * No change is missed: see {@link appendChanges}. Ids may have gaps, which are never filled.
 */
export async function readChanges(
  client: Queryable,
  { after, limit }: { after: number; limit: number },
): Promise<BookingChange[]> {
  const { rows } = await client.query<BookingChange>(
    `select booking_changes.id, booking_changes.partner, booking_changes.reference_kind as "referenceKind",
       booking_changes.reference, change, event_id as "eventId", booking_changes.sequence, changed_at as "changedAt", case when change <> 'deleted' then payload end as payload
     from booking_changes
     left join booking_events on booking_events.id = booking_changes.event_id
     where booking_changes.id > $1
     order by booking_changes.id
     limit $2`,
    [after, limit],
  );
  return rows;
}

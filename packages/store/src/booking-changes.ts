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

/** An arbitrary number that no other advisory lock in this database uses. */
const feedLock = 7_245_113_001;

/**
 * Appends to the feed. Call this last in a transaction. No other transaction appends until this one commits, so ids
 * become visible in order, and a reader that asks for `id > last` never misses a row.
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

export interface BookingChange {
  id: number;
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  change: Change;
  eventId: string;
  sequence: number;
  changedAt: Date;
  /** The booking's content after the change; null: the booking is deleted. */
  payload: unknown;
}

/**
 * Reads the feed. Apply the changes in the order of their ids to follow every booking's state. A later change of a
 * booking always overrides an earlier one, even if its sequence is lower: it corrects the state after a late event. A
 * booking may be reported as deleted twice.
 *
 * No change is missed: see {@link appendChanges}. Ids may have gaps, which are never filled.
 *
 * @param range.after the id of the last change that was applied; 0: none was
 */
export async function readChanges(
  client: Queryable,
  range: { after: number; limit: number },
): Promise<BookingChange[]> {
  const { rows } = await client.query<BookingChange>(
    `select booking_changes.id, booking_changes.partner, booking_changes.reference_kind as "referenceKind",
       booking_changes.reference, change, event_id as "eventId", booking_changes.sequence, changed_at as "changedAt",
       case when change <> 'deleted' then payload end as payload
     from booking_changes
     left join booking_events on booking_events.id = booking_changes.event_id
     where booking_changes.id > $1
     order by booking_changes.id
     limit $2`,
    [range.after, range.limit],
  );
  return rows;
}

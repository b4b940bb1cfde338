import type { Change, PlannedChange } from "@booking-events/bookings";
import { bigints, integers, texts, uuids } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import { settleAll } from "../connect/settle-all.ts";
import { defaultSchema } from "../connect/transaction-limits.ts";
import type { StoredBooking } from "./bookings.ts";

/** `erased`: an operator has removed the booking and its events, so nobody can read them any more. */
export type FeedChange = Change | "erased";

export interface ChangeToInsert
  extends Pick<StoredBooking, "bookingId" | "partner" | "referenceKind">,
    Omit<PlannedChange, "change"> {
  /** Null: the booking has been erased. */
  reference: string | null;
  /** Numbers the booking's changes: 1, 2, 3 and so on. */
  revision: number;
  change: FeedChange;
}

/**
 * Appends to the feed, and notifies its listeners. Call this last in a transaction. No other transaction appends until
 * this one commits, so ids have no gaps and become visible in order. A reader that asks for `id > last` never misses a
 * row.
 */
export async function appendChanges(client: Queryable, changes: ChangeToInsert[]): Promise<void> {
  const [, { rowCount }] = await settleAll([takeIds(client, changes.length), insertChanges(client, changes)]);
  if (rowCount !== changes.length) throw new Error("The table feed_position must have its row.");
}

/**
 * The channel on which each transaction that appends sends its last id. Several schemas of one database have one each.
 * A schema's name fits, since both may have 63 bytes.
 */
export function channelOf(schema: string): string {
  return schema === defaultSchema ? "booking_changes" : schema;
}

/** Locks the row until the transaction ends. If it is rolled back, the next one takes the same ids. */
function takeIds(client: Queryable, count: number) {
  return client.query(
    `with feed as (update feed_position set last_id = last_id + $1 returning last_id)
     select pg_notify(case current_schema() when $2 then $3 else current_schema() end, last_id::text) from feed`,
    [count, defaultSchema, channelOf(defaultSchema)],
  );
}

function insertChanges(client: Queryable, changes: ChangeToInsert[]) {
  return client.query(
    `insert into booking_changes (id, partner, reference_kind, reference, revision, change, event_id, sequence,
       previous_event_id, booking_id)
     select feed_position.last_id - $1 + number, partner, reference_kind, reference, revision, change, event_id,
       sequence, previous_event_id, booking_id
     from feed_position, (
       select generate_series(1, $1) as number, unnest($2::text[]) as partner,
         unnest($3::text[]) as reference_kind, unnest($4::text[]) as reference, unnest($5::integer[]) as revision,
         unnest($6::text[]) as change, unnest($7::uuid[]) as event_id, unnest($8::bigint[]) as sequence,
         unnest($9::uuid[]) as previous_event_id, unnest($10::uuid[]) as booking_id
     ) as appended`,
    [
      changes.length,
      texts(changes.map(({ partner }) => partner)),
      texts(changes.map(({ referenceKind }) => referenceKind)),
      texts(changes.map(({ reference }) => reference)),
      integers(changes.map(({ revision }) => revision)),
      texts(changes.map(({ change }) => change)),
      uuids(changes.map(({ eventId }) => eventId)),
      bigints(changes.map(({ sequence }) => sequence)),
      uuids(changes.map(({ previousEventId }) => previousEventId)),
      uuids(changes.map(({ bookingId }) => bookingId)),
    ],
  );
}

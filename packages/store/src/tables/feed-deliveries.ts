import type { ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";
import type { FeedChange } from "./booking-changes.ts";

/** A change of a booking that a reader of the feed could not be given. Its attempts are used up. */
export interface FeedDeadLetter {
  changeId: number;
  bookingId: string;
  /** This and the next two: null if the feed no longer has the change. */
  partner: string | null;
  change: FeedChange | null;
  referenceKind: ReferenceKind | null;
  /** Also null if the booking has been erased. */
  reference: string | null;
  attempts: number;
  firstFailedAt: Date | null;
  lastFailedAt: Date | null;
  diedAt: Date;
  /** A class, such as `http-500`, or an error's code or name. */
  failure: string | null;
}

/** A booking that waits for another attempt of a reader, because one has failed. */
export interface ParkedDelivery extends Omit<FeedDeadLetter, "diedAt"> {
  retryAt: Date;
}

const ofDelivery = `change_id::float8 as "changeId", delivery.booking_id as "bookingId", partner, change,
       reference_kind as "referenceKind", reference, attempts, first_failed_at as "firstFailedAt",
       last_failed_at as "lastFailedAt", failure`;

/** Lists the bookings that a reader has parked: those that are tried next first. */
export async function listParkedDeliveries(
  client: Queryable,
  reader: string,
  limit: number,
): Promise<ParkedDelivery[]> {
  const { rows } = await client.query<ParkedDelivery>(
    `select ${ofDelivery}, retry_at as "retryAt"
     from feed_deliveries as delivery left join booking_changes on id = change_id
     where reader = $1 and retry_at is not null
     order by retry_at, change_id
     limit $2`,
    [reader, limit],
  );
  return rows;
}

/** Lists the dead letters of a reader in the order of the feed. */
export async function listFeedDeadLetters(client: Queryable, reader: string, limit: number): Promise<FeedDeadLetter[]> {
  const { rows } = await client.query<FeedDeadLetter>(
    `select ${ofDelivery}, died_at as "diedAt"
     from feed_deliveries as delivery left join booking_changes on id = change_id
     where reader = $1 and died_at is not null
     order by change_id
     limit $2`,
    [reader, limit],
  );
  return rows;
}

/**
 * Has dead letters of a reader delivered again, at once and with all attempts. Run this in a transaction.
 *
 * @param changeIds null: all
 * @returns how many there were
 */
export async function replayFeedDeadLetters(
  client: Queryable,
  reader: string,
  changeIds: number[] | null,
): Promise<number> {
  await startAgain(client, reader);
  const { rowCount } = await client.query(
    `update feed_deliveries set died_at = null, retry_at = now(), attempts = 0, first_failed_at = null
     where reader = $1 and died_at is not null and ($2::bigint[] is null or change_id = any($2))`,
    [reader, changeIds],
  );
  return rowCount ?? 0;
}

/**
 * Takes dead letters of a reader for delivered. If a later change of the booking waits behind one, that is due at once.
 * Run this in a transaction.
 *
 * @returns how many there were
 */
export async function discardFeedDeadLetters(client: Queryable, reader: string, changeIds: number[]): Promise<number> {
  await startAgain(client, reader);
  const { rowCount } = await client.query(
    `with discarded as (
       select booking_id, change_id, (
         select min(id) from booking_changes
         where booking_changes.booking_id = feed_deliveries.booking_id and id > change_id and id <= last_id
       ) as next_id
       from feed_deliveries join feed_readers on name = reader
       where reader = $1 and died_at is not null and change_id = any($2::bigint[])
     )
     update feed_deliveries as delivery set done_id = discarded.change_id, change_id = next_id, since_id = null,
       died_at = null, retry_at = case when next_id is not null then now() end, attempts = 0, first_failed_at = null,
       last_failed_at = null, failure = null
     from discarded
     where reader = $1 and delivery.booking_id = discarded.booking_id and delivery.change_id = discarded.change_id`,
    [reader, changeIds],
  );
  return rowCount ?? 0;
}

/** `changed_at` is when a transaction began, so a change may have a lower id than one that says it is a little older. */
const longestTransaction = "5 minutes";

/**
 * Moves a reader back, so that it is given all changes since a time again, and a few before. Run this in a transaction.
 *
 * @returns how many changes; undefined: there is no such reader. One that starts over, or is not that far, stays
 */
export async function replayFeedSince(client: Queryable, reader: string, since: Date): Promise<number | undefined> {
  await startAgain(client, reader);
  const { rows } = await client.query<{ lastId: number | null; changes: number }>(
    `with place as (
       select name, feed_readers.last_id as before, greatest(
         (select id from booking_changes where changed_at < $2::timestamptz - interval '${longestTransaction}'
          order by id desc limit 1),
         kept_from - 1
       ) as wanted
       from feed_readers cross join feed_position
       where name = $1
     )
     update feed_readers set last_id = case when last_id > wanted then wanted else last_id end, moved_at = now()
     from place where place.name = feed_readers.name
     returning last_id::float8 as "lastId", coalesce(before - last_id, 0)::float8 as changes`,
    [reader, since],
  );
  const [moved] = rows;
  if (moved === undefined) return undefined;
  // Those of later changes would be skipped, or retried besides.
  await client.query("delete from feed_deliveries where reader = $1 and coalesce(change_id, done_id) > $2", [
    reader,
    moved.lastId,
  ]);
  // What it was given is remembered from there on, once it has a filter.
  await client.query(
    `update subscriptions set from_id = least(from_id, $2), given_id = greatest(given_id, $2 + $3::bigint)
     where name = $1 and $3::bigint > 0`,
    [reader, moved.lastId, moved.changes],
  );
  // It may have lost that a booking has left its filter, and then is told once more.
  await client.query(
    `update feed_handed as handed set is_inside = true
     where reader = $1 and not is_inside
       and exists (select from booking_changes as change where change.booking_id = handed.booking_id and id > $2)`,
    [reader, moved.lastId],
  );
  return moved.changes;
}

/**
 * The process that delivers forgets what it has read of the reader, and reads again. What is due now has not failed for
 * days, whatever has before.
 */
async function startAgain(client: Queryable, reader: string): Promise<void> {
  await client.query("update feed_readers set active_id = null, failing_since = null where name = $1", [reader]);
}

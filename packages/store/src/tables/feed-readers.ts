import type { Queryable } from "../connect/queryable.ts";

/** A program that reads the feed, or a subscription. */
export interface FeedReader {
  name: string;
  /** The role of PostgreSQL to which the reader belongs. */
  owner: string;
  /** The id of the last change that it has dealt with; null: it has been reset, and starts over. */
  lastId: number | null;
  /** How many changes it has not dealt with. */
  lagChanges: number;
  /** For how long the oldest of them has waited. 0: there is none. */
  lagMs: number;
  /** Changes that it has not read were removed, because they were too old. Then it has to start over. */
  hasMissedChanges: boolean;
  /** When its program was last known to run. */
  seenAt: Date;
  /** How many bookings wait for another attempt, because one has failed. At most {@link maxBookings} are counted. */
  parked: number;
  /** How many bookings have used up their attempts. At most {@link maxBookings} are counted. */
  dead: number;
  /** Since when every attempt has failed. */
  failingSince: Date | null;
  /** Since when nothing is delivered but a probe, because every booking fails. */
  breakerOpenedAt: Date | null;
  /** Since when the subscription is paused. */
  pausedAt: Date | null;
}

const maxBookings = 10_000;

/** @returns the readers that are furthest behind, in that order */
export async function listFeedReaders(client: Queryable, limit: number): Promise<FeedReader[]> {
  const { rows } = await client.query<FeedReader>(
    `select reader.name, reader.owner::text as owner, reader.last_id::float8 as "lastId",
       greatest(position.last_id - coalesce(reader.last_id, position.kept_from - 1), 0)::float8 as "lagChanges",
       greatest(
         case when reader.last_id >= position.last_id then 0 else extract(epoch from now() - waiting.since) * 1000 end, 0
       )::float8 as "lagMs",
       reader.last_id + 1 < position.kept_from is true as "hasMissedChanges", reader.seen_at as "seenAt",
       (select count(*) from (
         select from feed_deliveries where reader = reader.name and retry_at is not null limit $2
       ) as parked)::int as parked,
       (select count(*) from (
         select from feed_deliveries where reader = reader.name and died_at is not null limit $2
       ) as dead)::int as dead,
       failing_since as "failingSince", breaker_opened_at as "breakerOpenedAt", subscription.paused_at as "pausedAt"
     from feed_readers as reader
     left join subscriptions as subscription on subscription.name = reader.name
     cross join feed_position as position
     left join booking_changes as oldest on oldest.id = greatest(reader.last_id + 1, position.kept_from)
     cross join lateral (
       select case when reader.last_id is null then reader.moved_at else oldest.changed_at end as since
     ) as waiting
     order by "lagMs" desc, reader.name
     limit $1`,
    [limit, maxBookings],
  );
  return rows;
}

/**
 * Makes a reader start over. A program that runs does so at once, by itself.
 *
 * @returns false: there is no such reader
 */
export async function resetFeedReader(client: Queryable, name: string): Promise<boolean> {
  const { rowCount } = await client.query(
    "update feed_readers set last_id = null, snapshot_after = null, active_id = null, moved_at = now() where name = $1",
    [name],
  );
  return rowCount === 1;
}

/** Removes a reader whose program no longer runs. One that runs would be there again at once. */
export async function removeFeedReader(client: Queryable, name: string): Promise<"removed" | "running" | "unknown"> {
  const { rowCount } = await client.query(
    "delete from feed_readers where name = $1 and seen_at < now() - interval '2 minutes'",
    [name],
  );
  if (rowCount === 1) return "removed";
  const { rowCount: left } = await client.query("select from feed_readers where name = $1", [name]);
  return left === 0 ? "unknown" : "running";
}

/**
 * Records how far a subscriber that pulls has come, and that it was seen. The first time, this creates its reader. A
 * subscription that was removed gets none.
 */
export async function notePlace(client: Queryable, name: string, lastId: number): Promise<void> {
  await client.query(
    `insert into feed_readers as reader (name, last_id)
     select name, least($2, last_id) from subscriptions cross join feed_position where name = $1
     on conflict (name) do update set last_id = excluded.last_id, seen_at = now(),
       moved_at = case when reader.last_id = excluded.last_id then reader.moved_at else now() end`,
    [name, lastId],
  );
}

/** @returns the id of the newest change of the feed */
export async function readFeedEnd(client: Queryable): Promise<number> {
  const { rows } = await client.query<{ lastId: number }>(`select last_id::float8 as "lastId" from feed_position`);
  return rows[0]?.lastId ?? 0;
}

import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "../tables.ts";
import type { Place } from "./place.ts";

/** What is to be kept of a booking, because the reader's place does not say it. */
export interface DeliveryRow {
  bookingId: string;
  /** Changes up to this one are done. */
  doneId: number | null;
  waiting: WaitingDelivery | null;
}

/** A delivery that has failed. */
export interface WaitingDelivery {
  changeId: number;
  /** The first change that it stands for; null: itself only. */
  sinceId: number | null;
  attempts: number;
  /** Until the next attempt; null: there is none, the delivery is dead. */
  pauseMs: number | null;
  failure: string | null;
}

/** What a consumer has done since the last time. */
export interface Progress {
  name: string;
  /** Of the consumer's lease. */
  token: string;
  place: Place;
  /** Of the last attempt; null: there was none. */
  isWorking: boolean | null;
  /** Null: as before. */
  breaker: { isOpen: boolean; probeInMs: number } | null;
  rows: DeliveryRow[];
}

/**
 * Records progress of all consumers in one statement, if the process still holds their leases. After an outage, there may
 * be two of one name: the one that has lost its lease, and the one that has it now.
 *
 * @returns the progress of those whose leases it holds
 */
export async function recordProgress(client: Queryable, tables: FeedTables, progress: Progress[]): Promise<Progress[]> {
  const rows = progress.flatMap(({ name, token, rows }) => rows.map((row) => ({ ...row, name, token })));
  const { rows: held } = await client.query<{ name: string; token: string }>(
    `with held as (
       update ${tables.readers} as reader set
         last_id = done.last_id, snapshot_after = done.snapshot_after, seen_at = now(),
         moved_at = case when reader.last_id = done.last_id then moved_at else now() end,
         failing_since = case done.is_working when true then null when false then coalesce(failing_since, now())
           else failing_since end,
         breaker_opened_at = case done.is_open when true then coalesce(breaker_opened_at, now()) when false then null
           else breaker_opened_at end,
         probe_at = case done.is_open when true then now() + make_interval(secs => done.probe_ms / 1000)
           when false then null else probe_at end
       from unnest($1::text[], $2::uuid[], $3::bigint[], $4::uuid[], $5::boolean[], $6::boolean[], $7::float8[])
         as done (name, token, last_id, snapshot_after, is_working, is_open, probe_ms)
       where reader.name = done.name and reader.active_id = done.token
       returning reader.name, reader.active_id as token
     ), written as (
       ${upsertRows(
         tables,
         `select row.* from held join unnest($8::text[], $9::uuid[], $10::uuid[], $11::bigint[], $12::bigint[],
            $13::bigint[], $14::integer[], $15::float8[], $16::text[])
            as row (name, token, booking_id, done_id, change_id, since_id, attempts, pause_ms, failure)
            using (name, token)`,
       )}
     )
     select name, token from held`,
    [
      progress.map(({ name }) => name),
      progress.map(({ token }) => token),
      progress.map(({ place }) => place.lastId),
      progress.map(({ place }) => place.snapshotAfter),
      progress.map(({ isWorking }) => isWorking),
      progress.map(({ breaker }) => breaker?.isOpen ?? null),
      progress.map(({ breaker }) => breaker?.probeInMs ?? null),
      rows.map(({ name }) => name),
      rows.map(({ token }) => token),
      ...columnsOf(rows),
    ],
  );
  const tokens = new Map(held.map(({ name, token }) => [name, token]));
  return progress.filter(({ name, token }) => tokens.get(name) === token);
}

/**
 * Records in a handler's own transaction that its delivery is done. Until that ends, no other process can take over.
 *
 * @returns whether the process still holds the lease
 */
export async function recordDone(
  client: Queryable,
  tables: FeedTables,
  { name, token, row }: { name: string; token: string; row: DeliveryRow },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `with held as (select name from ${tables.readers} where name = $1 and active_id = $2 for share)
     ${upsertRows(
       tables,
       `select held.name, row.* from held cross join unnest($3::uuid[], $4::bigint[], $5::bigint[], $6::bigint[],
          $7::integer[], $8::float8[], $9::text[])
          as row (booking_id, done_id, change_id, since_id, attempts, pause_ms, failure)`,
     )}`,
    [name, token, ...columnsOf([row])],
  );
  return rowCount === 1;
}

/** @param rows a statement with what {@link columnsOf} has, after the name of the reader */
const upsertRows = ({ deliveries }: FeedTables, rows: string) => `
  insert into ${deliveries} as old (reader, booking_id, done_id, change_id, since_id, attempts, first_failed_at,
    last_failed_at, retry_at, died_at, failure)
  select name, booking_id, done_id, change_id, since_id, attempts,
    case when change_id is not null then now() end, case when change_id is not null then now() end,
    case when change_id is not null then now() + make_interval(secs => pause_ms / 1000) end,
    case when change_id is not null and pause_ms is null then now() end, failure
  from (${rows}) as written
  on conflict (reader, booking_id) do update set
    done_id = greatest(old.done_id, excluded.done_id), change_id = excluded.change_id, since_id = excluded.since_id,
    attempts = excluded.attempts,
    first_failed_at = case when excluded.change_id = old.change_id then coalesce(old.first_failed_at, now())
      else excluded.first_failed_at end,
    last_failed_at = coalesce(excluded.last_failed_at, old.last_failed_at), retry_at = excluded.retry_at,
    died_at = excluded.died_at, failure = excluded.failure`;

function columnsOf(rows: DeliveryRow[]) {
  return [
    rows.map(({ bookingId }) => bookingId),
    rows.map(({ doneId }) => doneId),
    rows.map(({ waiting }) => waiting?.changeId ?? null),
    rows.map(({ waiting }) => waiting?.sinceId ?? null),
    rows.map(({ waiting }) => waiting?.attempts ?? 0),
    rows.map(({ waiting }) => waiting?.pauseMs ?? null),
    rows.map(({ waiting }) => waiting?.failure ?? null),
  ];
}

/** A delivery that is due, or will be. */
export interface DueDelivery {
  name: string;
  bookingId: string;
  changeId: number;
  /** 0 and less: it is due. */
  dueInMs: number;
  /** It is due, and the guest arrives within two days. */
  arrivesSoon: boolean;
}

/** Of each reader. Among so many, those go first whose guests arrive soon. */
const maxCompared = 500;

/**
 * @returns of each reader the deliveries that wait for another attempt: those that are due and whose guests arrive soon,
 *   and then those that are due first
 */
export async function findDue(
  client: Queryable,
  tables: FeedTables,
  { names, limit }: { names: string[]; limit: number },
): Promise<DueDelivery[]> {
  const { rows } = await client.query<DueDelivery>(
    `select reader.name, due.booking_id as "bookingId", due.change_id::float8 as "changeId",
       -- If the clock was ahead at the failure, and was set back since, the delivery would wait for as long. Not now(), which
       -- may be before another transaction began that has ended since.
       case when due.last_failed_at > clock_timestamp() then 0
         else (extract(epoch from due.retry_at - now()) * 1000)::float8 end as "dueInMs", due.arrives_soon as "arrivesSoon"
     from unnest($1::text[]) as reader (name)
     cross join lateral (
       select waiting.*, booking.booking_id is not null as arrives_soon
       from (
         select booking_id, change_id, retry_at, last_failed_at from ${tables.deliveries} as delivery
         where delivery.reader = reader.name and retry_at is not null
         order by retry_at, change_id
         limit $3
       ) as waiting
       -- It may still be yesterday where the guest arrives.
       left join ${tables.bookings} as booking on waiting.retry_at <= now() and booking.booking_id = waiting.booking_id
         and booking.state = 'active' and booking.consumer_trip_arrival_date
           between (now() at time zone 'UTC')::date - 1 and (now() at time zone 'UTC')::date + 3
       order by arrives_soon desc, retry_at, change_id
       limit $2
     ) as due`,
    [names, limit, maxCompared],
  );
  return rows;
}

/** Whether deliveries wait that have failed, or come behind one that has. Dead ones count. */
export async function hasParked(client: Queryable, { deliveries }: FeedTables, name: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `select from ${deliveries} where reader = $1 and change_id is not null limit 1`,
    [name],
  );
  return rowCount === 1;
}

/** Removes rows that say nothing any more. */
export async function removeSpent(client: Queryable, tables: FeedTables, names: string[]): Promise<void> {
  await client.query(`select ${tables.removeSpentDeliveries}($1)`, [names]);
}

import { queryPrepared } from "@booking-events/store";
import type pg from "pg";
import { type BookingChange, type ChangeRow, selectChanges, toChange } from "../read-changes.ts";
import type { FeedTables } from "../tables.ts";
import type { Handed } from "./filter.ts";

/** A booking that can be handed to a consumer now. */
export interface Wanted {
  name: string;
  /** Of the consumer's lease. */
  token: string;
  bookingId: string;
  /** The change; null: whatever the booking holds, for a snapshot. */
  changeId: number | null;
  isLatest: boolean;
}

/** What is found of it, all at the same moment. */
export interface Found {
  /** Whether the process still holds the consumer's lease. */
  isHeld: boolean;
  /** The booking's changes up to this one are done. */
  doneId: number | null;
  /** An earlier delivery of the booking waits. */
  waiting: {
    changeId: number;
    sinceId: number | null;
    attempts: number;
    isDead: boolean;
    /** False: it has not been tried. */
    hasFailed: boolean;
  } | null;
  handed: Handed;
  /** If the consumer wants every change and one waits: the booking's change after `change`. */
  nextId: number | null;
  /**
   * What to hand over: the wanted change or, if the booking has been erased, that. If the consumer wants the latest and one
   * waits, or the feed no longer has the wanted one: the booking's newest change. Null: the feed has none.
   */
  change: BookingChange | null;
}

/**
 * Reads what is to be handed over now, of many consumers in one statement. Whoever hands it over at once hands over nothing
 * of a guest who was erased before.
 *
 * @returns in the order of `wanted`
 */
export async function readDeliveries(pool: pg.Pool, tables: FeedTables, wanted: Wanted[]): Promise<Found[]> {
  const { rows } = await queryPrepared<FoundRow>(pool, selectDeliveries(tables), [
    wanted.map(({ name }) => name),
    wanted.map(({ bookingId }) => bookingId),
    wanted.map(({ changeId }) => changeId),
    wanted.map(({ isLatest }) => isLatest),
    wanted.map(({ token }) => token),
  ]);
  // A change that several consumers get is sent once.
  const changes = new Map(rows.flatMap((row) => (row.id === null ? [] : [[row.id, toChange(row as ChangeRow)]])));
  return rows.map((row) => ({
    isHeld: row.isHeld,
    doneId: row.doneId,
    waiting:
      row.waitingId === null
        ? null
        : {
            changeId: row.waitingId,
            sinceId: row.sinceId,
            attempts: row.attempts,
            isDead: row.isDead,
            hasFailed: row.hasFailed,
          },
    handed: row.isInside === null ? "never" : row.isInside ? "inside" : "outside",
    nextId: row.nextId,
    change: row.chosenId === null ? null : (changes.get(row.chosenId) ?? null),
  }));
}

type FoundRow = { [Key in keyof ChangeRow]: ChangeRow[Key] | null } & {
  isHeld: boolean;
  doneId: number | null;
  waitingId: number | null;
  sinceId: number | null;
  attempts: number;
  isDead: boolean;
  hasFailed: boolean;
  isInside: boolean | null;
  chosenId: number | null;
  nextId: number | null;
};

const selectDeliveries = (tables: FeedTables) => `
  with wanted as (
    select * from unnest($1::text[], $2::uuid[], $3::bigint[], $4::boolean[], $5::uuid[]) with ordinality
      as wanted (reader, booking_id, change_id, is_latest, token, number)
  ), found as materialized (
    select wanted.*, lease.name is not null as is_held, delivery.done_id, delivery.change_id as waiting_id,
      delivery.since_id, delivery.attempts, delivery.died_at is not null as is_dead,
      delivery.failure is not null as has_failed, handed.is_inside,
      case
        when asked.id is null or newest.change = 'erased' or wanted.is_latest and delivery.change_id is not null
          then newest.id
        else asked.id
      end as chosen_id
    from wanted
    left join ${tables.readers} as lease on lease.name = wanted.reader and lease.active_id = wanted.token
    left join ${tables.deliveries} as delivery
      on delivery.reader = wanted.reader and delivery.booking_id = wanted.booking_id
    left join ${tables.handed} as handed on handed.reader = wanted.reader and handed.booking_id = wanted.booking_id
    left join ${tables.changes} as asked on asked.id = wanted.change_id and asked.booking_id = wanted.booking_id
    left join lateral (
      select id, change from ${tables.changes} where booking_id = wanted.booking_id order by id desc limit 1
    ) as newest on true
  ), chosen as (
    ${selectChanges(tables, `select * from ${tables.changes} where id = any(array(select chosen_id from found))`)}
  ), numbered as (
    select *, row_number() over (partition by chosen_id order by number) as copy from found
  )
  select chosen.*, is_held as "isHeld", done_id::float8 as "doneId", waiting_id::float8 as "waitingId",
    since_id::float8 as "sinceId", attempts, is_dead as "isDead", has_failed as "hasFailed", is_inside as "isInside",
    chosen_id::float8 as "chosenId",
    case when waiting_id is not null and not is_latest then (
      select min(later.id)::float8 from ${tables.changes} as later
      where later.booking_id = numbered.booking_id and later.id > chosen_id
    ) end as "nextId"
  from numbered left join chosen on chosen.id = chosen_id and copy = 1
  order by number`;

import type { Queryable } from "../connect/queryable.ts";
import { firstIdAt } from "../tables/event-ids.ts";
import { type EventDetails, type EventSelection, eventDetails, isSelected, toSelection } from "./list-events.ts";

/** What the query of {@link findNewEvents} has seen. */
export interface FollowPosition {
  /** The transactions whose events have been seen, as PostgreSQL writes a snapshot. */
  snapshot: string;
  lastChangeId: number;
  /** When the query ran, by PostgreSQL's clock. */
  readAt: Date;
}

/** In a repeatable read transaction, the position is that of its other queries. */
export async function findFollowPosition(client: Queryable): Promise<FollowPosition> {
  const { rows } = await client.query<FollowPosition>(
    `select pg_current_snapshot()::text as snapshot, last_id as "lastChangeId", now() as "readAt" from feed_position`,
  );
  const [position] = rows;
  if (position === undefined) throw new Error("The table feed_position must have its row.");
  return position;
}

/**
 * An event that changed no booking is found if it was applied within this time after its receipt. It is also longer
 * than any transaction of a worker.
 */
export const followWindowMs = 5 * 60_000;

/**
 * Finds the events that transactions have applied since a position, oldest first. Transactions commit in another order
 * than they begin, and an event may have waited for days, so neither times nor ids tell what is new:
 *
 * - Events that changed a booking are found by the feed, whose ids are in the order of commits. The decider of a change
 *   is new if the same transaction has written both.
 * - Other events are found among those received lately, by the transaction that wrote the row. The row of an event that
 *   was revised later is written again. It is found a second time if it was applied less than
 *   {@link followWindowMs} before the position.
 *
 * Call this in a repeatable read transaction.
 */
export async function findNewEvents(
  client: Queryable,
  position: FollowPosition,
  { limit, ...selection }: EventSelection & { limit: number },
): Promise<EventDetails[]> {
  const { rows } = await client.query<EventDetails>(
    `select event.*
     from (
       select event.id
       from booking_changes as change join booking_events as event on event.id = change.event_id
       where change.id > $6 and event.processed_at = change.changed_at
       union
       select id from booking_events
       where id >= $7 and processed_at >= $8 and age(xmin) <= ${maxAge}
         and not pg_visible_in_snapshot(${writtenBy}, $9::pg_snapshot)
     ) as new
     cross join lateral (
       select ${eventDetails} from booking_events where booking_events.id = new.id and ${isSelected} limit 1
     ) as event
     order by event.sequence, event.id
     limit $10`,
    [
      ...toSelection(selection),
      position.lastChangeId,
      firstIdAt(new Date(position.readAt.getTime() - followWindowMs)),
      new Date(position.readAt.getTime() - followWindowMs),
      position.snapshot,
      limit,
    ],
  );
  return rows;
}

/** A row has the lower 32 bits of its transaction's number. The transaction is not later than the newest one. */
const newestTransaction = "(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)";
const writtenBy = `(${newestTransaction} - ((${newestTransaction} - xmin::text::bigint) & 4294967295))::text::xid8`;
/** Tells at a tenth of the cost that most rows were written before all transactions that the position has not seen. */
const maxAge = "(select age((pg_snapshot_xmin($9::pg_snapshot)::text::bigint & 4294967295)::text::xid))";

import type { Outcome, Place, WarningCode } from "@booking-events/bookings";
import type { EventKind, ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "../connect/database.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { firstIdAt } from "../tables/event-ids.ts";

/** An event as an operator sees it. */
export interface EventDetails {
  id: string;
  partner: string;
  kind: EventKind;
  referenceKind: ReferenceKind;
  reference: string;
  sequence: number;
  idempotencyKey: string | null;
  /** Null: it was imported. */
  secretId: string | null;
  outcome: Outcome;
  duplicateOf: string | null;
  warnings: readonly WarningCode[];
  receivedAt: Date;
  processedAt: Date;
}

const eventDetails = `id, partner, kind, reference_kind as "referenceKind", reference, sequence,
  idempotency_key as "idempotencyKey", secret_id as "secretId", outcome, duplicate_of as "duplicateOf", warnings,
  received_at as "receivedAt", processed_at as "processedAt"`;

export interface EventFilter {
  partner?: string | undefined;
  /** Of the trips and consumers with this reference. Needs the partner. */
  reference?: string | undefined;
  /** That came by this secret. Needs the partner, whose secrets have ids of their own. */
  secret?: string | undefined;
  kind?: EventKind | undefined;
  outcome?: Outcome | undefined;
  /** Received at this time or later. */
  since?: Date | undefined;
  /** Received before this time. */
  until?: Date | undefined;
  /** The id of an event; only earlier ones are listed. */
  before?: string | undefined;
  limit: number;
}

/**
 * Lists the events that were received last, newest first. The ids of events begin with the time of their receipt, so
 * the primary key finds a period.
 */
export async function listEvents(client: Queryable, filter: EventFilter): Promise<EventDetails[]> {
  const { rows } = await client.query<EventDetails>(
    `select ${eventDetails}
     from booking_events
     where ${isSelected} and ($9::text is null or secret_id = $9) and id >= $5 and ($6::uuid is null or id < $6) and ($7::uuid is null or id < $7)
     order by id desc
     limit $8`,
    [
      ...toParameters(filter),
      ...[firstIdAt(filter.since ?? new Date(0)), filter.until === undefined ? null : firstIdAt(filter.until)],
      ...[filter.before ?? null, filter.limit, filter.secret ?? null],
    ],
  );
  return rows;
}

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
  filter: Pick<EventFilter, "partner" | "secret" | "reference" | "kind" | "outcome" | "limit">,
): Promise<EventDetails[]> {
  const { rows } = await client.query<EventDetails>(
    `select event.*
     from (
       select event.id
       from booking_changes as change join booking_events as event on event.id = change.event_id
       where change.id > $5 and event.processed_at = change.changed_at
       union
       select id from booking_events
       where id >= $6 and processed_at >= $7 and age(xmin) <= ${maxAge}
         and not pg_visible_in_snapshot(${writtenBy}, $8::pg_snapshot)
     ) as new
     cross join lateral (
       select ${eventDetails} from booking_events where booking_events.id = new.id and ${isSelected}
         and ($10::text is null or secret_id = $10) limit 1
     ) as event
     order by event.sequence, event.id
     limit $9`,
    [
      ...toParameters(filter),
      position.lastChangeId,
      firstIdAt(new Date(position.readAt.getTime() - followWindowMs)),
      new Date(position.readAt.getTime() - followWindowMs),
      ...[position.snapshot, filter.limit, filter.secret ?? null],
    ],
  );
  return rows;
}

/** A row has the lower 32 bits of its transaction's number. The transaction is not later than the newest one. */
const newestTransaction = "(select pg_snapshot_xmax(pg_current_snapshot())::text::bigint)";
const writtenBy = `(${newestTransaction} - ((${newestTransaction} - xmin::text::bigint) & 4294967295))::text::xid8`;
/** Tells at a tenth of the cost that most rows were written before all transactions that the position has not seen. */
const maxAge = "(select age((pg_snapshot_xmin($8::pg_snapshot)::text::bigint & 4294967295)::text::xid))";

const isSelected = `($1::text is null or partner = $1) and ($2::bytea[] is null or booking_key = any($2))
       and ($3::text is null or kind = $3) and ($4::text is null or outcome = $4)`;

function toParameters({ partner, reference, kind, outcome }: Partial<EventFilter>): unknown[] {
  const keys = (["trip", "consumer"] as const).map((any) => bookingKey(partner ?? "", any, reference ?? ""));
  return [partner ?? null, reference === undefined ? null : keys, kind ?? null, outcome ?? null];
}

/** @returns undefined if no such event has been processed */
export async function findEvent(
  client: Queryable,
  id: string,
): Promise<(EventDetails & { payload: unknown }) | undefined> {
  const { rows } = await client.query<EventDetails & { payload: unknown }>(
    `select ${eventDetails}, payload from booking_events where id = $1`,
    [id],
  );
  return rows[0];
}

/**
 * Lists the newest events of a booking, oldest first, and counts the events before them.
 *
 * Events that count in the fold and events that don't have separate places in the index. A lookup for each kind reads
 * no more events than it returns, however many the booking has. Only the count reads all of them.
 *
 * @param range.before the id of an event; only events before it in the booking's log are listed
 */
export async function listBookingEvents(
  client: Queryable,
  bookingKey: Buffer,
  range: { limit: number; before?: string | undefined },
): Promise<{ events: EventDetails[]; earlier: number }> {
  const { rows } = await client.query<EventDetails>(
    `select event.*
     from (values (true), (false)) as log (counts)
     cross join lateral (
       select ${eventDetails}
       from booking_events
       where booking_key = $1 and (duplicate_of is null) = log.counts
         and ($3::uuid is null or (sequence, id) < (select sequence, id from booking_events where id = $3))
       order by sequence desc, id desc
       limit $2
     ) as event
     order by sequence desc, id desc
     limit $2`,
    [bookingKey, range.limit, range.before ?? null],
  );
  const events = rows.toReversed();
  const [oldest] = events;
  return { events, earlier: oldest === undefined ? 0 : await countEventsBefore(client, bookingKey, oldest) };
}

async function countEventsBefore(client: Queryable, bookingKey: Buffer, place: Place): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    "select count(*)::int from booking_events where booking_key = $1 and (sequence, id) < ($2, $3)",
    [bookingKey, place.sequence, place.id],
  );
  return rows[0]?.count ?? 0;
}

/** What should be recorded of an event with an idempotency key, and is not. */
export interface MisjudgedKey {
  id: string;
  isDuplicate: boolean;
  isReuse: boolean;
}

/**
 * Finds events with idempotency keys whose recorded outcome differs from what the order of receipt says.
 *
 * @param limit for each booking
 * @returns those of each booking, in the same order
 */
export async function findMisjudgedKeys(
  client: Queryable,
  bookingKeys: Buffer[],
  limit: number,
): Promise<MisjudgedKey[][]> {
  const { rows } = await client.query<MisjudgedKey & { number: number }>(
    `select number::int, misjudged.*
     from unnest($1::bytea[]) with ordinality as booking (key, number)
     cross join lateral (
       select id, not is_first_with_content as "isDuplicate", is_first_with_content and not is_first_use as "isReuse"
       from (
         select id, duplicate_of, warnings,
           row_number() over (partition by idempotency_key order by sequence, id) = 1 as is_first_use,
           row_number() over (partition by idempotency_key, kind, content_digest order by sequence, id) = 1
             as is_first_with_content
         from booking_events
         where booking_key = booking.key and idempotency_key is not null
       ) as event
       where (duplicate_of is null) <> is_first_with_content
         or ('key-reused' = any (warnings)) <> (is_first_with_content and not is_first_use)
       limit $2
     ) as misjudged`,
    [bookingKeys, limit],
  );
  const byBooking = Map.groupBy(rows, ({ number }) => number);
  return bookingKeys.map((_, index) =>
    (byBooking.get(index + 1) ?? []).map(({ id, isDuplicate, isReuse }) => ({ id, isDuplicate, isReuse })),
  );
}

import type { Outcome, Place } from "@booking-events/bookings";
import type { EventKind } from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";
import type { EventToInsert } from "../tables/booking-events.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { firstIdAt } from "../tables/event-ids.ts";
import { originalOf } from "./original-of.ts";

/** An event as an operator sees it. It was imported if the id of its secret is null. */
export interface EventDetails
  extends Required<Omit<EventToInsert, "bookingKey" | "payload" | "contentDigest" | "after">> {
  processedAt: Date;
}

export const eventDetails = `id, partner, kind, reference_kind as "referenceKind", reference, sequence,
  idempotency_key as "idempotencyKey", secret_id as "secretId", outcome, ${originalOf("duplicate_of")} as "duplicateOf", warnings,
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
     where ${isSelected} and id >= $6 and ($7::uuid is null or id < $7) and ($8::uuid is null or id < $8)
     order by id desc
     limit $9`,
    [
      ...toSelection(filter),
      firstIdAt(filter.since ?? new Date(0)),
      filter.until === undefined ? null : firstIdAt(filter.until),
      filter.before ?? null,
      filter.limit,
    ],
  );
  return rows;
}

/** A condition of SQL, whose parameters are those of {@link toSelection}. */
export const isSelected = `($1::text is null or partner = $1) and ($2::bytea[] is null or booking_key = any($2))
       and ($3::text is null or kind = $3) and ($4::text is null or outcome = $4)
       and ($5::text is null or secret_id = $5)`;

export type EventSelection = Pick<EventFilter, "partner" | "reference" | "kind" | "outcome" | "secret">;

export function toSelection({ partner, reference, kind, outcome, secret }: EventSelection): unknown[] {
  const keys = (["trip", "consumer"] as const).map((any) => bookingKey(partner ?? "", any, reference ?? ""));
  return [partner ?? null, reference === undefined ? null : keys, kind ?? null, outcome ?? null, secret ?? null];
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
 * @param range.until only events that were received until then
 */
export async function listBookingEvents(
  client: Queryable,
  bookingKey: Buffer,
  range: { limit: number; before?: string | undefined; until?: Date | undefined },
): Promise<{ events: EventDetails[]; earlier: number }> {
  const { rows } = await client.query<EventDetails>(
    `select event.*
     from (values (true), (false)) as log (counts)
     cross join lateral (
       select ${eventDetails}
       from booking_events
       where booking_key = $1 and (duplicate_of is null) = log.counts
         and ($3::uuid is null or (sequence, id) < (select sequence, id from booking_events where id = $3))
         and ($4::bigint is null or sequence <= $4)
       order by sequence desc, id desc
       limit $2
     ) as event
     order by sequence desc, id desc
     limit $2`,
    [bookingKey, range.limit, range.before ?? null, range.until === undefined ? null : range.until.getTime() * 1_000],
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

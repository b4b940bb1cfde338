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

/** What a search that may find nothing for long has seen. */
export interface EventSearch {
  /** The newest first. */
  events: EventDetails[];
  /** The id of the oldest event that was looked at; null: nothing is left to look at. It gives the next page. */
  lookedTo: string | null;
}

/** Without an index, so many are read in some milliseconds. */
const maxLooked = 20_000;
const commonOutcomes = ["created", "updated"];

/**
 * Lists events as {@link listEvents} does, and looks at a limited number of them, so that it answers soon whatever is
 * wanted. An index finds those of a partner, or with a rare outcome.
 */
export async function searchEvents(client: Queryable, filter: Omit<EventFilter, "reference">): Promise<EventSearch> {
  const { partner, outcome, kind, secret, since, until, before, limit } = filter;
  const isRare = outcome !== undefined && !commonOutcomes.includes(outcome);
  const indexed = isRare ? "outcome = $1" : partner === undefined ? "$1::text is null" : "partner = $1";
  const { rows } = await client.query<EventDetails & { lookedTo: string | null }>(
    `with last as (
       select (
         select id from booking_events
         where ${indexed} and id >= $6 and ($7::uuid is null or id < $7) and ($8::uuid is null or id < $8)
         order by id desc offset ${maxLooked} limit 1
       ) as id
     )
     select last.id as "lookedTo", found.*
     from last left join lateral (
       select ${eventDetails}
       from booking_events
       where ${indexed} and ($2::text is null or partner = $2) and ($3::text is null or outcome = $3)
         and ($4::text is null or kind = $4) and ($5::text is null or secret_id = $5)
         and id >= coalesce((select id from last), $6) and ($7::uuid is null or id < $7) and ($8::uuid is null or id < $8)
       order by id desc
       limit $9
     ) as found on true`,
    [
      isRare ? outcome : (partner ?? null),
      partner ?? null,
      outcome ?? null,
      kind ?? null,
      secret ?? null,
      firstIdAt(since ?? new Date(0)),
      until === undefined ? null : firstIdAt(until),
      before ?? null,
      limit + 1,
    ],
  );
  const found = rows.filter(({ id }) => id !== null);
  const events = found.slice(0, limit).map(({ lookedTo: _, ...event }) => event);
  return { events, lookedTo: found.length > limit ? (events.at(-1)?.id ?? null) : (rows[0]?.lookedTo ?? null) };
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

import type { Outcome, Place, WarningCode } from "@booking-events/bookings";
import type { EventKind, ReferenceKind } from "@booking-events/schema";
import { bookingKey } from "./booking-key.ts";
import type { Queryable } from "./database.ts";
import { firstIdAt } from "./event-ids.ts";

/** An event as an operator sees it. */
export interface EventDetails {
  id: string;
  partner: string;
  kind: EventKind;
  referenceKind: ReferenceKind;
  reference: string;
  sequence: number;
  idempotencyKey: string | null;
  outcome: Outcome;
  duplicateOf: string | null;
  warnings: readonly WarningCode[];
  receivedAt: Date;
  processedAt: Date;
}

const eventDetails = `id, partner, kind, reference_kind as "referenceKind", reference, sequence,
  idempotency_key as "idempotencyKey", outcome, duplicate_of as "duplicateOf", warnings, received_at as "receivedAt",
  processed_at as "processedAt"`;

export interface EventFilter {
  partner?: string | undefined;
  /** Of the trips and consumers with this reference. Needs the partner. */
  reference?: string | undefined;
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
  const { partner = "", reference } = filter;
  const keys = (["trip", "consumer"] as const).map((kind) => bookingKey(partner, kind, reference ?? ""));
  const { rows } = await client.query<EventDetails>(
    `select ${eventDetails}
     from booking_events
     where ($1::text is null or partner = $1) and ($2::bytea[] is null or booking_key = any($2))
       and ($3::text is null or kind = $3) and ($4::text is null or outcome = $4)
       and id >= $5 and ($6::uuid is null or id < $6) and ($7::uuid is null or id < $7)
     order by id desc
     limit $8`,
    [
      ...[filter.partner ?? null, reference === undefined ? null : keys, filter.kind ?? null, filter.outcome ?? null],
      ...[firstIdAt(filter.since ?? new Date(0)), filter.until === undefined ? null : firstIdAt(filter.until)],
      ...[filter.before ?? null, filter.limit],
    ],
  );
  return rows;
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
 * Finds events with idempotency keys whose recorded outcome differs from what the order of receipt says. Duplicates
 * with the warning `key-reused` are left out: they are from a release in which keys belonged to partners, and keep what
 * it recorded.
 */
export async function findMisjudgedKeys(client: Queryable, bookingKey: Buffer, limit: number): Promise<MisjudgedKey[]> {
  const { rows } = await client.query<MisjudgedKey>(
    `select id, not is_first_with_content as "isDuplicate", is_first_with_content and not is_first_use as "isReuse"
     from (
       select id, duplicate_of, warnings,
         row_number() over (partition by idempotency_key order by sequence, id) = 1 as is_first_use,
         row_number() over (partition by idempotency_key, kind, content_digest order by sequence, id) = 1
           as is_first_with_content
       from booking_events
       where booking_key = $1 and idempotency_key is not null
         and not (duplicate_of is not null and 'key-reused' = any (warnings))
     ) as event
     where (duplicate_of is null) <> is_first_with_content
       or ('key-reused' = any (warnings)) <> (is_first_with_content and not is_first_use)
     limit $2`,
    [bookingKey, limit],
  );
  return rows;
}

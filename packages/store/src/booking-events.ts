import type {
  BookingState,
  CreatesAround,
  KeyUses,
  LoggedEvent,
  Outcome,
  Place,
  RevisedEvent,
  WarningCode,
} from "@booking-events/bookings";
import type { EventKind, ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "./database.ts";

export interface EventToInsert {
  id: string;
  partner: string;
  kind: EventKind;
  referenceKind: ReferenceKind;
  reference: string;
  bookingKey: Buffer;
  sequence: number;
  idempotencyKey: string | null;
  /** JSON text. */
  payload: string;
  /** Hex of the SHA-256 of the canonical content. */
  contentDigest: string;
  outcome: Outcome;
  /** An event of the booking with the same idempotency key, kind and content that came first, if this one did not. */
  duplicateOf: string | null;
  warnings: readonly WarningCode[];
  /** The booking after the event; null: the event takes no part in the fold. */
  after: BookingState | null;
  receivedAt: Date;
}

/**
 * The payloads go as one JSON array: as elements of a PostgreSQL array, each of their quotation marks would be escaped
 * here and unescaped there.
 *
 * @param events in the order of their sequences: two transactions with the same events wait then, and don't deadlock
 * @returns false when another transaction has inserted one of the events since {@link findProcessed}: roll back and
 *   begin again
 */
export async function insertEvents(client: Queryable, events: EventToInsert[]): Promise<boolean> {
  const { rowCount } = await client.query(
    `insert into booking_events (id, partner, kind, reference, booking_key, sequence, idempotency_key, content_digest,
       outcome, duplicate_of, received_at, state_after, decided_by, content_from, keyless_sequence_after, warnings,
       reference_kind, payload)
     select id, partner, kind, reference, booking_key, sequence, idempotency_key, content_digest, outcome, duplicate_of,
       received_at, state_after, decided_by, content_from, keyless_sequence_after, string_to_array(warnings, ' '),
       reference_kind, payload
     from rows from (
       unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[], $7::text[], $8::bytea[],
         $9::text[], $10::uuid[], $11::timestamptz[], $12::text[], $13::uuid[], $14::uuid[], $15::bigint[],
         $16::text[], $17::text[]),
       jsonb_array_elements($18::jsonb))
       as event (id, partner, kind, reference, booking_key, sequence, idempotency_key, content_digest, outcome,
         duplicate_of, received_at, state_after, decided_by, content_from, keyless_sequence_after, warnings, reference_kind,
         payload)
     on conflict (id) do nothing`,
    [
      events.map((event) => event.id),
      events.map((event) => event.partner),
      events.map((event) => event.kind),
      events.map((event) => event.reference),
      events.map((event) => event.bookingKey),
      events.map((event) => event.sequence),
      events.map((event) => event.idempotencyKey),
      events.map((event) => digestToBytes(event.contentDigest)),
      events.map((event) => event.outcome),
      events.map((event) => event.duplicateOf),
      events.map((event) => event.receivedAt),
      ...toStateColumns(events),
      events.map((event) => event.warnings.join(" ")),
      events.map((event) => event.referenceKind),
      `[${events.map((event) => event.payload).join(",")}]`,
    ],
  );
  return rowCount === events.length;
}

/** @returns the outcomes of those of the events that stand in the log already */
export async function findProcessed(client: Queryable, ids: string[]): Promise<Map<string, Outcome>> {
  const { rows } = await client.query<{ id: string; outcome: Outcome }>(
    "select id, outcome from booking_events where id = any($1)",
    [ids],
  );
  return new Map(rows.map(({ id, outcome }) => [id, outcome]));
}

/**
 * Both lookups find one row by an index that holds it, however many events the booking has with the key.
 *
 * @returns for each event, in the same order, what its booking's log knows of its key
 */
export async function findKeyUses(
  client: Queryable,
  events: { bookingKey: Buffer; idempotencyKey: string | null; kind: EventKind; contentDigest: string }[],
): Promise<KeyUses[]> {
  const counting = `from booking_events
       where booking_key = event.booking_key and idempotency_key = event.idempotency_key and duplicate_of is null`;
  const { rows } = await client.query<KeyUsesRow>(
    `select first.id as "firstId", first.sequence as "firstSequence", first.kind as "firstKind",
       first.kind = event.kind and first.content_digest = event.content_digest as "isFirstSame",
       reusing.id as "reusingId", reusing.sequence as "reusingSequence"
     from unnest($1::bytea[], $2::text[], $3::text[], $4::bytea[]) with ordinality
       as event (booking_key, idempotency_key, kind, content_digest, number)
     left join lateral (
       select id, sequence, kind, content_digest ${counting} and 'key-reused' <> all (warnings) limit 1
     ) as first on true
     left join lateral (
       select id, sequence ${counting} and 'key-reused' = any (warnings)
         and kind = event.kind and content_digest = event.content_digest
       limit 1
     ) as reusing on true
     order by event.number`,
    [
      events.map(({ bookingKey }) => bookingKey),
      events.map(({ idempotencyKey }) => idempotencyKey),
      events.map(({ kind }) => kind),
      events.map(({ contentDigest }) => digestToBytes(contentDigest)),
    ],
  );
  return rows.map(toKeyUses);
}

interface KeyUsesRow {
  firstId: string | null;
  firstSequence: number;
  firstKind: EventKind;
  isFirstSame: boolean;
  reusingId: string | null;
  reusingSequence: number;
}

function toKeyUses({ firstId, firstSequence, firstKind, isFirstSame, ...reusing }: KeyUsesRow): KeyUses {
  const first = firstId === null ? null : { id: firstId, sequence: firstSequence, kind: firstKind };
  if (first !== null && isFirstSame) return { first, same: first };
  const { reusingId, reusingSequence } = reusing;
  return { first, same: reusingId === null ? null : { id: reusingId, sequence: reusingSequence } };
}

/** @returns for each place, in the same order, the creates of the content that count in the fold */
export async function findCreatesAround(
  client: Queryable,
  places: { bookingKey: Buffer; contentDigest: string; sequence: number; id: string }[],
): Promise<CreatesAround[]> {
  const ofContent = `from booking_events
       where booking_key = place.booking_key and content_digest = place.content_digest
         and kind = 'create' and idempotency_key is null`;
  const { rows } = await client.query<CreatesAround>(
    `select earlier.sequence as earlier, next.id as "nextId", next.sequence as "nextSequence"
     from unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::uuid[]) with ordinality
       as place (booking_key, content_digest, sequence, id, number)
     left join lateral (
       select sequence ${ofContent} and (sequence, id) < (place.sequence, place.id)
       order by sequence desc limit 1
     ) as earlier on true
     left join lateral (
       select * from (
         select id, sequence ${ofContent} and (sequence, id) > (place.sequence, place.id)
         order by sequence fetch first row with ties
       ) as first order by id limit 1
     ) as next on true
     order by place.number`,
    [
      places.map(({ bookingKey }) => bookingKey),
      places.map(({ contentDigest }) => digestToBytes(contentDigest)),
      places.map(({ sequence }) => sequence),
      places.map(({ id }) => id),
    ],
  );
  return rows;
}

/** An event of which something else is recorded than what its key and those before it make of it. */
export interface MisjudgedKey {
  id: string;
  isDuplicate: boolean;
  isReuse: boolean;
}

/**
 * Compares what is recorded of a booking's events with idempotency keys with what follows from the order of receipt. A
 * duplicate with the warning is from a release in which a key belonged to the partner: that stays as it was recorded.
 *
 * @returns what is right of those that are recorded otherwise
 */
export async function findMisjudgedKeys(client: Queryable, bookingKey: Buffer, limit: number): Promise<MisjudgedKey[]> {
  const { rows } = await client.query<MisjudgedKey>(
    `select id, not is_first_telling as "isDuplicate", is_first_telling and not is_first_use as "isReuse"
     from (
       select id, duplicate_of, warnings,
         row_number() over (partition by idempotency_key order by sequence, id) = 1 as is_first_use,
         row_number() over (partition by idempotency_key, kind, content_digest order by sequence, id) = 1
           as is_first_telling
       from booking_events
       where booking_key = $1 and idempotency_key is not null
         and not (duplicate_of is not null and 'key-reused' = any (warnings))
     ) as event
     where (duplicate_of is null) <> is_first_telling
       or ('key-reused' = any (warnings)) <> (is_first_telling and not is_first_use)
     limit $2`,
    [bookingKey, limit],
  );
  return rows;
}

/** A part of a booking's log. */
export interface LogPage {
  /** The last event before the first of {@link events}; null: there is none. */
  before: LoggedEvent | null;
  events: LoggedEvent[];
  /** No event comes after these. */
  isEnd: boolean;
}

/** From a place on: sequence first, then id, which only tells events of one sequence apart. */
export interface LogRange {
  bookingKey: Buffer;
  from: { sequence: number; id: string };
  limit: number;
}

/** Less than any event's. */
export const startOfLog = { sequence: 0, id: "00000000-0000-0000-0000-000000000000" };

/**
 * The limits of one row are for the planner: without them it may read the whole log to find two events by their ids.
 *
 * @returns for each range, in the same order, the events from the place on that count in the fold, in sequence order,
 *   and the one before them
 */
export async function readLog(client: Queryable, ranges: LogRange[]): Promise<LogPage[]> {
  const columns = `id, kind, sequence, booking_key, content_digest, idempotency_key, outcome, received_at, state_after,
         decided_by, content_from, keyless_sequence_after`;
  const counting = "from booking_events where booking_key = range.booking_key and duplicate_of is null";
  const { rows } = await client.query<LogRow>(
    `select range.number, event.is_before as "isBefore", event.id, event.kind, event.sequence, event.outcome,
       event.idempotency_key is not null as "hasIdempotencyKey",
       encode(event.content_digest, 'hex') as "contentDigest", event.received_at as "receivedAt",
       case when event.kind = 'create' and event.idempotency_key is null then (
         select earlier.sequence
         from booking_events as earlier
         where earlier.booking_key = event.booking_key and earlier.content_digest = event.content_digest
           and earlier.kind = 'create' and earlier.idempotency_key is null
           and (earlier.sequence, earlier.id) < (event.sequence, event.id)
         order by earlier.sequence desc
         limit 1
       ) end as "earlierCreate",
       event.state_after as "stateAfter", event.decided_by as "decidedBy", event.content_from as "contentFrom",
       event.keyless_sequence_after as "keylessSequenceAfter",
       decider.sequence as "deciderSequence", decider.received_at as "deciderReceivedAt",
       encode(source.content_digest, 'hex') as "sourceDigest"
     from unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::int[]) with ordinality
       as range (booking_key, sequence, id, "limit", number)
     cross join lateral (
       (select true as is_before, ${columns} ${counting} and (sequence, id) < (range.sequence, range.id)
        order by sequence desc fetch first row with ties)
       union all
       (select false as is_before, ${columns} ${counting} and (sequence, id) >= (range.sequence, range.id)
        order by sequence fetch first (range."limit") rows with ties)
     ) as event
     left join lateral (
       select sequence, received_at from booking_events where id = event.decided_by limit 1
     ) as decider on true
     left join lateral (select content_digest from booking_events where id = event.content_from limit 1) as source on true
     order by range.number, event.sequence, event.id`,
    [
      ranges.map(({ bookingKey }) => bookingKey),
      ranges.map(({ from }) => from.sequence),
      ranges.map(({ from }) => from.id),
      ranges.map(({ limit }) => limit),
    ],
  );
  const byRange = Map.groupBy(rows, ({ number }) => number);
  return ranges.map(({ limit }, index) => {
    const ofRange = byRange.get(index + 1) ?? [];
    const events = ofRange.filter(({ isBefore }) => !isBefore).map(toLoggedEvent);
    const before = ofRange.findLast(({ isBefore }) => isBefore);
    return { before: before === undefined ? null : toLoggedEvent(before), events, isEnd: events.length < limit };
  });
}

interface LogRow extends Omit<LoggedEvent, "after"> {
  /** Of the range, from 1. */
  number: number;
  isBefore: boolean;
  stateAfter: BookingState["state"] | null;
  decidedBy: string | null;
  deciderSequence: number | null;
  deciderReceivedAt: Date | null;
  contentFrom: string | null;
  sourceDigest: string | null;
  keylessSequenceAfter: number | null;
}

function toLoggedEvent(row: LogRow): LoggedEvent {
  const { id, kind, sequence, hasIdempotencyKey, contentDigest, outcome, receivedAt, earlierCreate } = row;
  const event = { id, kind, sequence, hasIdempotencyKey, contentDigest, outcome, receivedAt, earlierCreate };
  if (row.stateAfter === null) return { ...event, after: null };
  const isIncomplete =
    (row.decidedBy !== null && row.deciderSequence === null) || (row.contentFrom !== null && row.sourceDigest === null);
  if (isIncomplete) throw new Error("The log lacks an event that the state after another one names.");
  const decidedAt = row.deciderReceivedAt ?? receivedAt;
  return {
    ...event,
    after: {
      state: row.stateAfter,
      eventId: row.decidedBy ?? id,
      sequence: row.deciderSequence ?? sequence,
      content: contentAfter(row),
      lastSequence: sequence,
      updatedAt: decidedAt,
      deletedAt: row.stateAfter === "deleted" ? decidedAt : null,
    },
  };
}

function contentAfter(row: LogRow): BookingState["content"] {
  const newestKeylessSequence = row.keylessSequenceAfter;
  if (row.contentFrom !== null && row.sourceDigest !== null)
    return { digest: row.sourceDigest, eventId: row.contentFrom, newestKeylessSequence };
  return row.kind === "delete" ? null : { digest: row.contentDigest, eventId: row.id, newestKeylessSequence };
}

/** Records what events in the log do after a late event has taken its place before them. */
export async function reviseEvents(client: Queryable, revised: RevisedEvent[]): Promise<void> {
  const events = revised.map(({ event, outcome, after }) => ({ ...event, outcome, after }));
  await client.query(
    `update booking_events set outcome = revised.outcome, state_after = revised.state_after,
       decided_by = revised.decided_by, content_from = revised.content_from,
       keyless_sequence_after = revised.keyless_sequence_after
     from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[])
       as revised (id, outcome, state_after, decided_by, content_from, keyless_sequence_after)
     where booking_events.id = revised.id`,
    [events.map(({ id }) => id), events.map(({ outcome }) => outcome), ...toStateColumns(events)],
  );
}

/** Takes events out of the fold that repeat one received before them. */
export async function markDuplicates(
  client: Queryable,
  duplicates: (Place & { duplicateOf: string })[],
): Promise<void> {
  await client.query(
    `update booking_events set outcome = 'duplicate', duplicate_of = duplicate.duplicate_of, state_after = null,
       decided_by = null, content_from = null, keyless_sequence_after = null,
       warnings = array_remove(warnings, 'key-reused')
     from unnest($1::uuid[], $2::uuid[]) as duplicate (id, duplicate_of)
     where booking_events.id = duplicate.id`,
    [duplicates.map(({ id }) => id), duplicates.map(({ duplicateOf }) => duplicateOf)],
  );
}

/** Records that earlier events with another kind or content have the keys of these, which they had until now. */
export async function markReusing(client: Queryable, ids: string[]): Promise<void> {
  await client.query("update booking_events set warnings = warnings || '{key-reused}' where id = any($1)", [ids]);
}

/**
 * Records a warning with those of the events, deletes by a consumer's reference, whose consumer has bookings with trip
 * references. Bookings that this transaction has written count. The next hash in order is looked up rather than the same
 * one, so that there is no plan but by the index, however many bookings one consumer has.
 *
 * @returns their ids
 */
export async function markReferenceKind(client: Queryable, ids: string[]): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `update booking_events set warnings = warnings || '{reference-kind}'
     from unnest($1::uuid[]) as wanted (id)
     where booking_events.id = wanted.id
       and hashtextextended(booking_events.partner || ' ' || booking_events.reference, 0) = (
         select consumer_hash
         from bookings
         where consumer_hash >= hashtextextended(booking_events.partner || ' ' || booking_events.reference, 0)
         order by consumer_hash
         limit 1
       )
     returning booking_events.id`,
    [ids],
  );
  return rows.map(({ id }) => id);
}

/** The columns state_after, decided_by, content_from and keyless_sequence_after. */
function toStateColumns(
  events: { id: string; kind: EventKind; contentDigest: string; after: BookingState | null }[],
): unknown[][] {
  return [
    events.map(({ after }) => after?.state ?? null),
    events.map(({ id, after }) => (after === null || after.eventId === id ? null : after.eventId)),
    events.map((event) => (event.after === null || sentContent(event) ? null : (event.after.content?.eventId ?? null))),
    events.map(({ after }) => after?.content?.newestKeylessSequence ?? null),
  ];
}

function sentContent(event: { kind: EventKind; contentDigest: string; after: BookingState | null }): boolean {
  return event.kind !== "delete" && event.contentDigest === event.after?.content?.digest;
}

/** @param digest in hex */
function digestToBytes(digest: string): Buffer {
  return Buffer.from(digest, "hex");
}

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

const eventDetails = `id, partner, kind, reference_kind as "referenceKind", reference, sequence, idempotency_key as "idempotencyKey", outcome,
  duplicate_of as "duplicateOf", warnings, received_at as "receivedAt", processed_at as "processedAt"`;

/** The events received last, newest first. */
export async function listEvents(
  client: Queryable,
  filter: { partner?: string | undefined; limit: number },
): Promise<EventDetails[]> {
  const { rows } = await client.query<EventDetails>(
    `select ${eventDetails}
     from booking_events
     where $1::text is null or partner = $1
     order by id desc
     limit $2`,
    [filter.partner ?? null, filter.limit],
  );
  return rows;
}

/** @returns undefined when no such event has been processed */
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
 * Those that count in the fold and those that don't are looked up apart, since the index has them apart: so this reads no
 * more than it returns, however many events the booking has. Only counting goes through all.
 *
 * @param range.before only events that come before this one in the booking's log
 * @returns the newest of the booking's events, oldest first, and how many come before them
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

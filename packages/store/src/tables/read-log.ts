import type { BookingState, CreatesAround, KeyUses, LoggedEvent } from "@booking-events/bookings";
import type { EventKind } from "@booking-events/schema";
import type { Queryable } from "../connect/database.ts";
import { digestToBytes } from "./booking-events.ts";
import { timeOfId } from "./event-ids.ts";

/** A part of a booking's log. */
export interface LogPage {
  /** The last event before {@link events}; null: there is none. */
  before: LoggedEvent | null;
  events: LoggedEvent[];
  /** There are no events after these. */
  isEnd: boolean;
}

export interface LogRange {
  bookingKey: Buffer;
  /** The place of the first event. Events are in the order of their sequences, and of their ids if those are equal. */
  from: { sequence: number; id: string };
  limit: number;
  /** None of the booking's events has an id before this. See {@link firstIdOfBooking}. Default: no bound. */
  firstId?: string | undefined;
}

/** A place before every event. */
export const startOfLog = { sequence: 0, id: "00000000-0000-0000-0000-000000000000" };

/**
 * Reads events that count in the fold.
 *
 * The lookups by id have `limit 1` for the planner. Without it, PostgreSQL may read the whole log to find two events.
 *
 * @returns one page for each range, in the same order
 */
export async function readLog(client: Queryable, ranges: LogRange[]): Promise<LogPage[]> {
  const columns = `id, kind, sequence, booking_key, content_digest, idempotency_key, outcome, received_at, state_after,
         decided_by, content_from, keyless_sequence_after`;
  const counting = `from booking_events
         where booking_key = range.booking_key and duplicate_of is null and outcome <> 'expired'
           and id >= range.first_id and id >= $5`;
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
           and earlier.id >= range.first_id and earlier.id >= $5
         order by earlier.sequence desc
         limit 1
       ) end as "earlierCreate",
       event.state_after as "stateAfter", event.decided_by as "decidedBy", event.content_from as "contentFrom",
       event.keyless_sequence_after as "keylessSequenceAfter",
       decider.sequence as "deciderSequence", decider.received_at as "deciderReceivedAt",
       encode(source.content_digest, 'hex') as "sourceDigest"
     from unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::int[], $6::uuid[]) with ordinality
       as range (booking_key, sequence, id, "limit", first_id, number)
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
      ...boundIds(ranges),
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

/**
 * PostgreSQL knows the smallest bound before it runs the query, and leaves out partitions. With the bound of each lookup,
 * it skips more of them meanwhile.
 */
function boundIds(lookups: { firstId?: string | undefined }[]): [smallest: string, ofEach: string[]] {
  const ofEach = lookups.map(({ firstId = startOfLog.id }) => firstId);
  return [ofEach.toSorted()[0] ?? startOfLog.id, ofEach];
}

interface LogRow extends Omit<LoggedEvent, "after"> {
  /** The range's number, from 1. */
  number: number;
  isBefore: boolean;
  stateAfter: BookingState["state"];
  decidedBy: string | null;
  deciderSequence: number | null;
  deciderReceivedAt: Date | null;
  contentFrom: string | null;
  sourceDigest: string | null;
  keylessSequenceAfter: number | null;
}

function toLoggedEvent(row: LogRow): LoggedEvent {
  const { id, kind, sequence, hasIdempotencyKey, contentDigest, outcome, receivedAt, earlierCreate } = row;
  const decider = deciderOf(row);
  return {
    id,
    kind,
    sequence,
    hasIdempotencyKey,
    contentDigest,
    outcome,
    receivedAt,
    earlierCreate,
    after: {
      state: row.stateAfter,
      ...decider,
      content: contentAfter(row),
      lastSequence: sequence,
      deletedAt: row.stateAfter === "deleted" ? decider.updatedAt : null,
    },
  };
}

function deciderOf(row: LogRow): Pick<BookingState, "eventId" | "sequence" | "updatedAt"> {
  const { id, decidedBy, sequence, receivedAt, deciderSequence, deciderReceivedAt } = row;
  if (decidedBy === null) return { eventId: id, sequence, updatedAt: receivedAt };
  if (deciderSequence !== null && deciderReceivedAt !== null)
    return { eventId: decidedBy, sequence: deciderSequence, updatedAt: deciderReceivedAt };
  // It is older than the log. If its id has no time, this event's is as late as it can be.
  const updatedAt = new Date(Math.min(timeOfId(decidedBy), receivedAt.getTime()));
  return { eventId: decidedBy, sequence: Math.min(updatedAt.getTime() * 1_000, sequence), updatedAt };
}

function contentAfter(row: LogRow): BookingState["content"] {
  const newestKeylessSequence = row.keylessSequenceAfter;
  if (row.contentFrom !== null) {
    // The event is older than the log. Its content equals no other, as far as the log tells.
    const digest = row.sourceDigest ?? `of ${row.contentFrom}`;
    return { digest, eventId: row.contentFrom, newestKeylessSequence };
  }
  return row.kind === "delete" ? null : { digest: row.contentDigest, eventId: row.id, newestKeylessSequence };
}

/**
 * Each of the two lookups finds one row by an index, however many events of the booking have the key.
 *
 * @returns for each event, in the same order, how its booking's log has used the event's key
 */
export async function findKeyUses(
  client: Queryable,
  events: {
    bookingKey: Buffer;
    idempotencyKey: string | null;
    kind: EventKind;
    contentDigest: string;
    firstId?: string;
  }[],
): Promise<KeyUses[]> {
  const counting = `from booking_events
       where booking_key = event.booking_key and idempotency_key = event.idempotency_key and duplicate_of is null
         and id >= event.first_id and id >= $5`;
  const { rows } = await client.query<KeyUsesRow>(
    `select first.id as "firstId", first.sequence as "firstSequence", first.kind as "firstKind",
       first.kind = event.kind and first.content_digest = event.content_digest as "isFirstSame",
       reusing.id as "reusingId", reusing.sequence as "reusingSequence"
     from unnest($1::bytea[], $2::text[], $3::text[], $4::bytea[], $6::uuid[]) with ordinality
       as event (booking_key, idempotency_key, kind, content_digest, first_id, number)
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
      ...boundIds(events),
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

/** @returns for each place, in the same order, the creates around it that count in the fold */
export async function findCreatesAround(
  client: Queryable,
  places: { bookingKey: Buffer; contentDigest: string; sequence: number; id: string; firstId?: string }[],
): Promise<CreatesAround[]> {
  const ofContent = `from booking_events
       where booking_key = place.booking_key and content_digest = place.content_digest
         and kind = 'create' and idempotency_key is null and booking_events.id >= place.first_id
         and booking_events.id >= $5`;
  const { rows } = await client.query<CreatesAround>(
    `select earlier.sequence as earlier, next.id as "nextId", next.sequence as "nextSequence"
     from unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::uuid[], $6::uuid[]) with ordinality
       as place (booking_key, content_digest, sequence, id, first_id, number)
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
      ...boundIds(places),
    ],
  );
  return rows;
}

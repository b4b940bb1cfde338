import { type BookingState, foldWarnings, type LoggedEvent } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import { boundIds, timeOfId } from "./event-ids.ts";

export interface LogPage {
  /** The last event before {@link events}; null: there is none. */
  before: LoggedEvent | null;
  events: LoggedEvent[];
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
         decided_by, content_from, newest_keyless_sequence, warnings`;
  const counting = `from booking_events
         where booking_key = range.booking_key and duplicate_of is null and outcome <> 'expired'
           and id >= range.first_id and id >= $5`;
  const { rows } = await client.query<LogRow>(
    `select range.number, event.is_before as "isBefore", event.id, event.kind, event.sequence, event.outcome, event.warnings,
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
       event.newest_keyless_sequence as "newestKeylessSequence",
       decider.sequence as "deciderSequence", decider.received_at as "deciderReceivedAt",
       encode(source.content_digest, 'hex') as "sourceDigest"
     from unnest($1::bytea[], $2::bigint[], $3::uuid[], $4::int[], $6::uuid[]) with ordinality
       as range (booking_key, sequence, id, "limit", first_id, number)
     cross join lateral (
       (select true as is_before, ${columns} ${counting} and (sequence, id) < (range.sequence, range.id)
        order by sequence desc, id desc limit 1)
       union all
       (select false as is_before, ${columns} ${counting} and (sequence, id) >= (range.sequence, range.id)
        order by sequence, id limit range."limit")
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
    const before = ofRange.find(({ isBefore }) => isBefore);
    return { before: before === undefined ? null : toLoggedEvent(before), events, isEnd: events.length < limit };
  });
}

interface LogRow extends Omit<LoggedEvent, "after" | "warning"> {
  warnings: string[];
  /** The range's number, from 1. */
  number: number;
  isBefore: boolean;
  stateAfter: BookingState["state"];
  decidedBy: string | null;
  deciderSequence: number | null;
  deciderReceivedAt: Date | null;
  contentFrom: string | null;
  sourceDigest: string | null;
  newestKeylessSequence: number | null;
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
    warning: foldWarnings.find((code) => row.warnings.includes(code)) ?? null,
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
  const { newestKeylessSequence } = row;
  if (row.contentFrom !== null) {
    // The event is older than the log. Its content equals no other, as far as the log tells.
    const digest = row.sourceDigest ?? `of ${row.contentFrom}`;
    return { digest, eventId: row.contentFrom, newestKeylessSequence };
  }
  return row.kind === "delete" ? null : { digest: row.contentDigest, eventId: row.id, newestKeylessSequence };
}

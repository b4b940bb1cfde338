import type { Outcome } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import { originalOf } from "./original-of.ts";

export interface RecordedEvent {
  /** Null: the event is not in the log. */
  outcome: Outcome | null;
  /** The earlier event that a duplicate repeats. Null: it has left the log, or the event is no duplicate. */
  duplicateOf: string | null;
  warnings: readonly string[];
  /** The event that decides the booking now. Null: the booking is not stored. */
  decidedBy: string | null;
  isErased: boolean;
  /** Null: the event has no dead letter. */
  deadLetter: { errorCode: string; isErased: boolean; isReplayed: boolean } | null;
}

/** @throws if the log cannot be read, because PostgreSQL does not answer, or is not set up for this role */
export async function probeReads(client: Queryable): Promise<void> {
  await client.query("select id from booking_events limit 0");
}

/** A duplicate repeats an event shortly before it. The limit keeps the search short, however many the booking has. */
const maxEarlierEvents = 1_000;

/**
 * Finds what became of an event. The log is partitioned by ids, so PostgreSQL looks into one partition.
 *
 * An event that repeats an earlier one's idempotency key has that one's id. One that repeats an earlier content is
 * compared with the events before it.
 *
 * @param eventId a UUID
 * @returns undefined if the partner has no such event, or its event waits in the queue
 */
export async function findRecordedEvent(
  client: Queryable,
  partner: string,
  eventId: string,
): Promise<RecordedEvent | undefined> {
  const { rows } = await client.query<RecordedEvent>(
    `select event.outcome, coalesce(event.warnings, '{}') as warnings, booking.event_id as "decidedBy",
       coalesce(${originalOf("event.duplicate_of")}, repeated.id) as "duplicateOf", booking.erased_at is not null as "isErased",
       case when letter.event_id is not null then json_build_object(
         'errorCode', letter.error_code,
         'isErased', letter.resolution is not distinct from 'erased',
         'isReplayed', coalesce(letter.resolved_at is null and letter.replayed_at > letter.failed_at, false)
       ) end as "deadLetter"
     from (values ($1::uuid)) as wanted (id)
     left join lateral (
       select id, sequence, booking_key, content_digest, outcome, duplicate_of, warnings
       from booking_events
       where id = $1 and partner = $2
       limit 1
     ) as event on true
     left join bookings as booking on booking.booking_key = event.booking_key
     left join lateral (
       select id
       from (
         select id, kind, content_digest, idempotency_key, outcome
         from booking_events
         where booking_key = event.booking_key and duplicate_of is null
           and (sequence, id) < (event.sequence, event.id)
         order by sequence desc
         limit ${maxEarlierEvents}
       ) as earlier
       where event.outcome = 'duplicate' and event.duplicate_of is null and earlier.kind <> 'delete'
         and earlier.content_digest = event.content_digest and earlier.idempotency_key is null
         and earlier.outcome <> 'duplicate'
       limit 1
     ) as repeated on true
     left join dead_letters as letter on letter.event_id = $1 and letter.partner = $2
     where event.id is not null or letter.event_id is not null`,
    [eventId, partner],
  );
  return rows[0];
}

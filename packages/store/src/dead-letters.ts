import type { Outcome } from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import { findProcessed } from "./booking-events.ts";
import type { Queryable } from "./database.ts";

export interface DeadLetterToWrite {
  eventId: string;
  partner: string | null;
  kind: string | null;
  referenceKind: ReferenceKind | null;
  reference: string | null;
  sequence: number | null;
  /** An SQLSTATE or one of the worker's own codes. */
  errorCode: string;
  /** For a person; holds nothing of the event's content. */
  error: string;
  attempts: number;
  /** The job's data as it came from Redis. */
  envelope: Buffer;
}

/**
 * An event has one dead letter. Another delivery of the same event adds none; one that was replayed and failed again
 * says so in its letter. An event that stands in the log gets none, and one that it has is closed: another delivery has
 * been applied.
 *
 * @returns the outcome of an event that stands in the log
 */
export async function writeDeadLetter(client: Queryable, letter: DeadLetterToWrite): Promise<Outcome | undefined> {
  const outcome = (await findProcessed(client, [letter.eventId])).get(letter.eventId);
  if (outcome !== undefined) {
    await resolveDeadLetter(client, { ...byWorker(outcome), eventId: letter.eventId });
    return outcome;
  }
  await client.query(
    `insert into dead_letters (event_id, partner, kind, reference, sequence, error_code, error, attempts, envelope,
       reference_kind)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     on conflict (event_id) do update set
       error_code = excluded.error_code,
       error = excluded.error,
       attempts = dead_letters.attempts + excluded.attempts,
       failed_at = excluded.failed_at
     where dead_letters.resolved_at is null and dead_letters.replayed_at > dead_letters.failed_at`,
    [
      letter.eventId,
      letter.partner,
      letter.kind,
      letter.reference,
      letter.sequence,
      letter.errorCode,
      letter.error,
      letter.attempts,
      letter.envelope,
      letter.referenceKind,
    ],
  );
  return undefined;
}

const byWorker = (outcome: Outcome) => ({ resolvedBy: "worker", resolution: `${appliedMeanwhile}${outcome}` });
const appliedMeanwhile = "applied meanwhile: ";

/**
 * Closes the letters of the last day whose events stand in the log after all: two deliveries of an event may end at the
 * same moment, the one in the log and the other as a letter, and neither sees the other. Or an event was replayed while
 * its failed delivery was about to come again, which then was applied and knows of no letter.
 *
 * A letter that was replayed within the last minute is left to whoever applies the replay, and says so.
 *
 * @returns how many there were
 */
export async function closeLettersOfApplied(client: Queryable): Promise<number> {
  const { rowCount } = await client.query(
    `update dead_letters set resolved_at = clock_timestamp(), resolved_by = 'worker', resolution = $1 || event.outcome
     from booking_events as event
     where event.id = dead_letters.event_id and resolved_at is null
       and greatest(failed_at, replayed_at) > now() - interval '1 day'
       and (replayed_at is null or replayed_at < failed_at or replayed_at < now() - interval '1 minute')`,
    [appliedMeanwhile],
  );
  return rowCount ?? 0;
}

/** A dead letter as an operator sees it. */
export interface DeadLetter {
  eventId: string;
  partner: string | null;
  kind: string | null;
  /** Null also where there is a reference, in letters that an older release has written. */
  referenceKind: ReferenceKind | null;
  reference: string | null;
  sequence: number | null;
  errorCode: string;
  error: string;
  attempts: number;
  failedAt: Date;
  replayedAt: Date | null;
  replayedBy: string | null;
  resolvedAt: Date | null;
  resolvedBy: string | null;
  resolution: string | null;
}

const deadLetterColumns = `event_id as "eventId", partner, kind, reference_kind as "referenceKind", reference, sequence,
  error_code as "errorCode", error, attempts, failed_at as "failedAt", replayed_at as "replayedAt", replayed_by as "replayedBy",
  resolved_at as "resolvedAt", resolved_by as "resolvedBy", resolution`;

export interface DeadLetterFilter {
  /** Only those of these. Ids without a dead letter are passed over. */
  eventIds?: string[] | undefined;
  partner?: string | undefined;
  errorCode?: string | undefined;
  /** Also those of which nothing is left to do. */
  includeResolved?: boolean;
  /** Without one: all. */
  limit?: number;
}

/** Oldest first. */
export async function listDeadLetters(client: Queryable, filter: DeadLetterFilter): Promise<DeadLetter[]> {
  const { rows } = await client.query<DeadLetter>(
    `select ${deadLetterColumns}
     from dead_letters
     where ($1::text is null or partner = $1) and ($2::text is null or error_code = $2)
       and ($3 or resolved_at is null) and ($4::uuid[] is null or event_id = any($4))
     order by failed_at, event_id
     limit $5`,
    [
      filter.partner ?? null,
      filter.errorCode ?? null,
      filter.includeResolved ?? false,
      filter.eventIds ?? null,
      filter.limit ?? null,
    ],
  );
  return rows;
}

/**
 * @returns the letter and the job's data as it came from Redis, which holds guests' data; undefined when the event has
 *   no dead letter
 */
export async function findDeadLetter(
  client: Queryable,
  eventId: string,
): Promise<(DeadLetter & { envelope: Buffer }) | undefined> {
  const { rows } = await client.query<DeadLetter & { envelope: Buffer }>(
    `select ${deadLetterColumns}, envelope from dead_letters where event_id = $1`,
    [eventId],
  );
  return rows[0];
}

/**
 * Notes that the event goes back into the queue. Call it before that, so that the worker which applies the event finds
 * an open letter.
 *
 * @returns false when nothing is left to do, so that the event must not be replayed
 */
export async function markReplayed(client: Queryable, eventId: string, replayedBy: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `update dead_letters set replayed_at = clock_timestamp(), replayed_by = $2
     where event_id = $1 and resolved_at is null`,
    [eventId, replayedBy],
  );
  return rowCount === 1;
}

/** Closes an open letter. A letter that is closed already stays as it is. */
export async function resolveDeadLetter(
  client: Queryable,
  resolution: { eventId: string; resolvedBy: string; resolution: string },
): Promise<boolean> {
  const { rowCount } = await client.query(
    `update dead_letters set resolved_at = clock_timestamp(), resolved_by = $2, resolution = $3
     where event_id = $1 and resolved_at is null`,
    [resolution.eventId, resolution.resolvedBy, resolution.resolution],
  );
  return rowCount === 1;
}

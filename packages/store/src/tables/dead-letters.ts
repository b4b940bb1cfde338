import type { Outcome } from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";
import { findProcessed } from "./booking-events.ts";

export interface DeadLetterToWrite {
  eventId: string;
  partner: string | null;
  kind: string | null;
  referenceKind: ReferenceKind | null;
  reference: string | null;
  sequence: number | null;
  /** The day on which the guest arrives, by the event. Default: it says none. */
  arrivalDay?: string | null;
  /** An SQLSTATE, or a code of the worker. */
  errorCode: string;
  /** For people. Holds nothing of the event's content. */
  error: string;
  attempts: number;
  /** The job's data, byte for byte as in Redis. */
  envelope: Buffer;
}

/**
 * Writes the dead letter of an event. An event has at most one: another delivery adds none, and a replay that fails
 * updates the letter. If the event is in the log, another delivery of it has been applied. Then nothing is written, and
 * an open letter is closed.
 *
 * @returns the event's outcome if it is in the log
 */
export async function writeDeadLetter(client: Queryable, letter: DeadLetterToWrite): Promise<Outcome | undefined> {
  const outcome = (await findProcessed(client, [letter.eventId])).get(letter.eventId);
  if (outcome !== undefined) {
    await resolveDeadLetter(client, { ...byWorker(outcome), eventId: letter.eventId });
    return outcome;
  }
  await client.query(
    `insert into dead_letters (event_id, partner, kind, reference, sequence, error_code, error, attempts, envelope,
       reference_kind, consumer_trip_arrival_date)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
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
      letter.arrivalDay ?? null,
    ],
  );
  return undefined;
}

const byWorker = (outcome: Outcome) => ({ resolvedBy: "worker", resolution: `${appliedMeanwhile}${outcome}` });
const appliedMeanwhile = "applied meanwhile: ";

/**
 * Closes the letters of the last day whose events are in the log. There are two ways to such a letter:
 * - two deliveries of an event ended at the same moment, one applied and one as a letter, and neither saw the other;
 * - an event was replayed while its failed delivery was about to be retried. The retry was applied, and knew of no
 *   letter.
 *
 * A letter that was replayed within the last minute is left alone: the worker that applies the replay closes it.
 *
 * @returns the number of letters that were closed
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

export interface DeadLetter extends Omit<DeadLetterToWrite, "envelope" | "arrivalDay"> {
  arrivalDay: string | null;
  failedAt: Date;
  replayedAt: Date | null;
  replayedBy: string | null;
  resolvedAt: Date | null;
  resolvedBy: string | null;
  resolution: string | null;
}

const deadLetterColumns = `event_id as "eventId", partner, kind, reference_kind as "referenceKind", reference, sequence,
  consumer_trip_arrival_date::text as "arrivalDay", error_code as "errorCode", error, attempts, failed_at as "failedAt", replayed_at as "replayedAt",
  replayed_by as "replayedBy", resolved_at as "resolvedAt", resolved_by as "resolvedBy", resolution`;

export interface DeadLetterFilter {
  /** Only the letters of these events. Events without a letter are skipped. */
  eventIds?: string[] | undefined;
  partner?: string | undefined;
  reference?: string | undefined;
  /** Of one of these. */
  references?: string[] | undefined;
  errorCode?: string | undefined;
  /** Closed letters too. */
  includeResolved?: boolean;
  limit?: number;
  /** When they failed. */
  since?: Date | undefined;
  until?: Date | undefined;
  /** The id of an event; only letters after its letter are listed. */
  after?: string | undefined;
}

/** Lists dead letters, oldest first. */
export async function listDeadLetters(client: Queryable, filter: DeadLetterFilter): Promise<DeadLetter[]> {
  const { conditions, values } = toConditions(filter);
  const { rows } = await client.query<DeadLetter>(
    `select ${deadLetterColumns}
     from dead_letters
     where ${conditions.join(" and ")}
     order by failed_at, event_id
     limit $${values.push(filter.limit ?? null)}`,
    values,
  );
  return rows;
}

/**
 * Only those that are asked for. A statement that is planned for any values can't use an index for what its values may
 * leave out.
 */
function toConditions(filter: DeadLetterFilter): { conditions: string[]; values: unknown[] } {
  const conditions = [filter.includeResolved ? "true" : "resolved_at is null"];
  const values: unknown[] = [];
  const add = (value: unknown, toCondition: (parameter: string) => string) => {
    if (value !== undefined) conditions.push(toCondition(`$${values.push(value)}`));
  };
  add(filter.partner, (partner) => `partner = ${partner}`);
  add(filter.errorCode, (code) => `error_code = ${code}`);
  add(filter.eventIds, (ids) => `event_id = any(${ids}::uuid[])`);
  add(filter.reference, (reference) => `reference = ${reference}`);
  add(filter.references, (references) => `reference = any(${references}::text[])`);
  add(filter.since, (since) => `failed_at >= ${since}`);
  add(filter.until, (until) => `failed_at < ${until}`);
  add(filter.after, (after) => {
    const last = `(select failed_at, event_id from dead_letters where event_id = ${after}::uuid)`;
    return `failed_at >= (select failed_at from dead_letters where event_id = ${after}::uuid) and (failed_at, event_id) > ${last}`;
  });
  return { conditions, values };
}

/** Open dead letters that failed for the same reason. */
export interface DeadLetterGroup {
  errorCode: string;
  count: number;
  oldestFailedAt: Date;
  /** How many of them were replayed, and have no result yet. */
  inQueue: number;
}

const maxGrouped = 100_000;
const maxGroups = 200;

/**
 * Groups the open dead letters by their code, the most frequent codes first.
 *
 * @param filter.limit how many are counted, the oldest first. Default: 100,000
 */
export async function groupDeadLetters(
  client: Queryable,
  { partner, errorCode, until, limit }: Pick<DeadLetterFilter, "partner" | "errorCode" | "until" | "limit">,
): Promise<DeadLetterGroup[]> {
  const { rows } = await client.query<DeadLetterGroup>(
    `select error_code as "errorCode", count(*)::int as count, min(failed_at) as "oldestFailedAt",
       count(*) filter (where replayed_at > failed_at)::int as "inQueue"
     from (
       select error_code, failed_at, replayed_at
       from dead_letters
       where resolved_at is null and ($1::text is null or partner = $1) and ($2::text is null or error_code = $2)
         and ($3::timestamptz is null or failed_at < $3)
       order by failed_at
       limit $4
     ) as open
     group by error_code
     order by count(*) desc, error_code
     limit ${maxGroups}`,
    [partner ?? null, errorCode ?? null, until ?? null, limit ?? maxGrouped],
  );
  return rows;
}

/**
 * Finds an event's dead letter. The envelope is the job's data as in Redis, and holds guests' personal data.
 *
 * @returns undefined if the event has no dead letter
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

/** Returns for each of the events whether it has a dead letter that is closed. */
export async function areLettersClosed(client: Queryable, eventIds: string[]): Promise<boolean[]> {
  const { rows } = await client.query<{ isClosed: boolean }>(
    `select exists (select from dead_letters where event_id = asked.id and resolved_at is not null) as "isClosed"
     from unnest($1::uuid[]) with ordinality as asked (id, position)
     order by position`,
    [eventIds],
  );
  return rows.map(({ isClosed }) => isClosed);
}

/**
 * Records that the event goes back into the queue. Call this before the event is queued: the worker that applies it
 * must find the letter marked.
 *
 * @returns false if the letter is closed. The event must not be replayed then
 */
export async function markReplayed(client: Queryable, eventId: string, replayedBy: string): Promise<boolean> {
  const { rowCount } = await client.query(
    `update dead_letters set replayed_at = clock_timestamp(), replayed_by = $2
     where event_id = $1 and resolved_at is null`,
    [eventId, replayedBy],
  );
  return rowCount === 1;
}

/**
 * Closes an open letter. A closed letter stays as it is.
 *
 * @returns whether the letter was open
 */
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

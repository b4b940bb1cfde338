import {
  type BookingState,
  type FoldEvent,
  foldWarnings,
  type Outcome,
  type Place,
  type RevisedEvent,
} from "@booking-events/bookings";
import type { EventKind } from "@booking-events/schema";
import { bigints, byteas, texts, timestamps, uuids } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import { consumerHash } from "./booking-key.ts";
import type { BookingIdentity } from "./bookings.ts";
import type { SentContent } from "./content-columns.ts";
import { monthsOfIds } from "./event-ids.ts";
import { wasFirst } from "./was-first.ts";

export interface EventToInsert extends BookingIdentity, Omit<FoldEvent, "hasIdempotencyKey" | "contentDigest"> {
  idempotencyKey: string | null;
  /** Which of the partner's secrets the event came by, if that is known. */
  secretId?: string | null;
  /** See {@link EventEnvelope}. */
  defaultCountry?: string | null;
  /** JSON text. Null: the event is recorded without its content. */
  payload: string | null;
  /** In hex: see {@link DigestKey}. */
  contentDigest: string | null;
  outcome: Outcome;
  /** The earlier event with the same idempotency key, kind and content, if there is one. */
  duplicateOf: string | null;
  /** Codes: what ingest has warned of, and the worker's. */
  warnings: readonly string[];
  /** The booking after the event; null: the event does not count in the fold. */
  after: BookingState | null;
}

/**
 * @param events in sequence order, so two transactions with the same events wait for each other and don't deadlock
 * @returns false if another transaction has inserted one of the events since {@link findProcessed}. Roll back, and
 *   begin again
 */
export function insertEvents(client: Queryable, events: EventToInsert[]): Promise<boolean> {
  return wasFirst(insert(client, events));
}

/** Inserts the event unless it is in the log. */
export async function insertMissingEvent(client: Queryable, event: EventToInsert): Promise<void> {
  await insert(client, [event], "on conflict (id) do nothing");
}

/**
 * The payloads are sent as texts, not as one JSON array: PostgreSQL then parses them one by one, and uses the same
 * memory for each.
 */
function insert(client: Queryable, events: EventToInsert[], ifPresent = "") {
  return client.query(
    `insert into booking_events (id, partner, kind, reference, booking_key, sequence, idempotency_key, content_digest,
       outcome, duplicate_of, received_at, state_after, decided_by, content_from, newest_keyless_sequence, warnings,
       reference_kind, payload, secret_id, default_country)
     select id, partner, kind, reference, booking_key, sequence, idempotency_key, content_digest, outcome, duplicate_of,
       received_at, state_after, decided_by, content_from, newest_keyless_sequence, string_to_array(warnings, ' '),
       reference_kind, payload::jsonb, secret_id, default_country
     from (
       select unnest($1::uuid[]) as id, unnest($2::text[]) as partner, unnest($3::text[]) as kind,
         unnest($4::text[]) as reference, unnest($5::bytea[]) as booking_key, unnest($6::bigint[]) as sequence,
         unnest($7::text[]) as idempotency_key, unnest($8::bytea[]) as content_digest,
         unnest($9::text[]) as outcome, unnest($10::uuid[]) as duplicate_of,
         unnest($11::timestamptz[]) as received_at, unnest($12::text[]) as state_after,
         unnest($13::uuid[]) as decided_by, unnest($14::uuid[]) as content_from,
         unnest($15::bigint[]) as newest_keyless_sequence, unnest($16::text[]) as warnings,
         unnest($17::text[]) as reference_kind, unnest($18::text[]) as payload, unnest($19::text[]) as secret_id,
         unnest($20::text[]) as default_country
     ) as event
     ${ifPresent}`,
    [
      uuids(events.map((event) => event.id)),
      texts(events.map((event) => event.partner)),
      texts(events.map((event) => event.kind)),
      texts(events.map((event) => event.reference)),
      byteas(events.map((event) => event.bookingKey)),
      bigints(events.map((event) => event.sequence)),
      texts(events.map((event) => event.idempotencyKey)),
      byteas(events.map(({ contentDigest }) => (contentDigest === null ? null : digestToBytes(contentDigest)))),
      texts(events.map((event) => event.outcome)),
      uuids(events.map((event) => event.duplicateOf)),
      timestamps(events.map((event) => event.receivedAt)),
      ...toStateColumns(events),
      texts(events.map((event) => event.warnings.join(" "))),
      texts(events.map((event) => event.referenceKind)),
      texts(events.map((event) => event.payload)),
      texts(events.map((event) => event.secretId ?? null)),
      texts(events.map((event) => event.defaultCountry ?? null)),
    ],
  );
}

/**
 * The planner does not see an array that comes from a subquery. It would compare each id with the bounds of each
 * partition. The months of the ids tell it as much.
 *
 * @returns the outcomes of the events that are in the log already, by their ids
 */
export async function findProcessed(client: Queryable, ids: string[]): Promise<Map<string, Outcome>> {
  const { rows } = await client.query<{ id: string; outcome: Outcome }>(
    `select id, outcome
     from booking_events
     where id = any((select $1::uuid[])::uuid[]) and id >= $2 and id < $3`,
    [uuids(ids), ...monthsOfIds(ids)],
  );
  return new Map(rows.map(({ id, outcome }) => [id, outcome]));
}

/**
 * Reads what logged events have sent. The numbers in the payloads may have lost digits: none of them is among the fields
 * that are read.
 *
 * @returns by the events' ids; those are missing whose payload has been removed
 */
export async function readContents(client: Queryable, ids: string[]): Promise<Map<string, SentContent>> {
  if (ids.length === 0) return new Map();
  const { rows } = await client.query<{ id: string } & SentContent>(
    `select id, payload, default_country as "defaultCountry"
     from booking_events
     where id = any((select $1::uuid[])::uuid[]) and id >= $2 and id < $3 and payload is not null`,
    [uuids(ids), ...monthsOfIds(ids)],
  );
  return new Map(rows.map(({ id, payload, defaultCountry }) => [id, { payload, defaultCountry }]));
}

const withoutFoldWarnings = foldWarnings.reduce((rest, code) => `array_remove(${rest}, '${code}')`, "warnings");

/** Records new outcomes, warnings and states of logged events, after a late event has taken its place before them. */
export async function reviseEvents(client: Queryable, revised: RevisedEvent[]): Promise<void> {
  const events = revised.map(({ event, ...step }) => ({ ...event, ...step }));
  await client.query(
    `update booking_events set outcome = revised.outcome, state_after = revised.state_after,
       decided_by = revised.decided_by, content_from = revised.content_from,
       newest_keyless_sequence = revised.newest_keyless_sequence,
       warnings = ${withoutFoldWarnings} || string_to_array(revised.warning, ' ')
     from unnest($1::uuid[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::bigint[], $7::text[])
       as revised (id, outcome, state_after, decided_by, content_from, newest_keyless_sequence, warning)
     where booking_events.id = revised.id`,
    [
      uuids(events.map(({ id }) => id)),
      texts(events.map(({ outcome }) => outcome)),
      ...toStateColumns(events),
      texts(events.map(({ warning }) => warning)),
    ],
  );
}

/** Takes logged events out of the fold that turn out to repeat an event received before them. */
export async function markDuplicates(
  client: Queryable,
  duplicates: (Place & { duplicateOf: string })[],
): Promise<void> {
  await client.query(
    `update booking_events set outcome = 'duplicate', duplicate_of = duplicate.duplicate_of, state_after = null,
       decided_by = null, content_from = null, newest_keyless_sequence = null,
       warnings = array_remove(${withoutFoldWarnings}, 'key-reused')
     from unnest($1::uuid[], $2::uuid[]) as duplicate (id, duplicate_of)
     where booking_events.id = duplicate.id`,
    [duplicates.map(({ id }) => id), duplicates.map(({ duplicateOf }) => duplicateOf)],
  );
}

/** Records that logged events use the idempotency key of an earlier event with another kind or content. */
export async function markReusing(client: Queryable, ids: string[]): Promise<void> {
  await client.query(
    `update booking_events set warnings = warnings || '{key-reused}'
     where id = any((select $1::uuid[])::uuid[]) and id >= $2 and id < $3`,
    [ids, ...monthsOfIds(ids)],
  );
}

/**
 * Records a warning with each delete by a consumer's reference whose consumer has bookings with trip references.
 * Bookings that this transaction has written count too.
 *
 * The query looks for the next hash in order instead of an equal one. Then PostgreSQL always uses the index, however
 * many bookings a consumer has.
 *
 * @param deletes by a consumer's reference
 * @returns the ids of the deletes with the warning
 */
export async function markReferenceKind(
  client: Queryable,
  deletes: { id: string; bookingKey: Buffer }[],
): Promise<string[]> {
  const { rows } = await client.query<{ id: string }>(
    `update booking_events set warnings = warnings || '{reference-kind}'
     from unnest($1::uuid[], $2::bigint[]) as wanted (id, consumer_hash)
     where booking_events.id = wanted.id
       and wanted.consumer_hash = (
         select consumer_hash
         from bookings
         where consumer_hash >= wanted.consumer_hash
         order by consumer_hash
         limit 1
       )
     returning booking_events.id`,
    [deletes.map(({ id }) => id), deletes.map(({ bookingKey }) => consumerHash(bookingKey))],
  );
  return rows.map(({ id }) => id);
}

/** The columns state_after, decided_by, content_from and newest_keyless_sequence. */
function toStateColumns(
  events: { id: string; kind: EventKind; contentDigest: string | null; after: BookingState | null }[],
): Buffer[] {
  return [
    texts(events.map(({ after }) => after?.state ?? null)),
    uuids(events.map(({ id, after }) => (after === null || after.eventId === id ? null : after.eventId))),
    uuids(events.map((event) => (sentContent(event) ? null : (event.after?.content?.eventId ?? null)))),
    bigints(events.map(({ after }) => after?.content?.newestKeylessSequence ?? null)),
  ];
}

function sentContent(event: { kind: EventKind; contentDigest: string | null; after: BookingState | null }): boolean {
  return event.kind !== "delete" && event.contentDigest === event.after?.content?.digest;
}

/** @param digest in hex */
export function digestToBytes(digest: string): Buffer {
  return Buffer.from(digest, "hex");
}

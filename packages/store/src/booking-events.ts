import type { EventKind } from "@booking-events/schema";
import type { Queryable } from "./database.ts";

/** What became of an event. `superseded`: it arrived after a later one, which decided the state. */
export type Outcome = "created" | "updated" | "deleted" | "recreated" | "unchanged" | "duplicate" | "superseded";

export interface EventToInsert {
  id: string;
  partner: string;
  kind: EventKind;
  reference: string;
  bookingKey: Buffer;
  sequence: number;
  idempotencyKey: string | null;
  /** JSON text. */
  payload: string;
  contentDigest: Buffer;
  outcome: Outcome;
  /** The event that came first with the same idempotency key, if this one is not the first. */
  duplicateOf: string | null;
  receivedAt: Date;
}

/**
 * The payloads go as one JSON array: as elements of a PostgreSQL array, each of their quotation marks would be escaped
 * here and unescaped there.
 *
 * @returns false when another transaction has inserted one of the events since {@link findProcessed}: roll back and
 *   begin again
 */
export async function insertEvents(client: Queryable, events: EventToInsert[]): Promise<boolean> {
  // In one order: two transactions with the same events wait, and don't deadlock.
  const sorted = events.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const { rowCount } = await client.query(
    `insert into booking_events (id, partner, kind, reference, booking_key, sequence, idempotency_key, content_digest,
       outcome, duplicate_of, received_at, payload)
     select * from rows from (
       unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::bigint[], $7::text[], $8::bytea[],
         $9::text[], $10::uuid[], $11::timestamptz[]),
       jsonb_array_elements($12::jsonb))
     on conflict (id) do nothing`,
    [
      sorted.map((event) => event.id),
      sorted.map((event) => event.partner),
      sorted.map((event) => event.kind),
      sorted.map((event) => event.reference),
      sorted.map((event) => event.bookingKey),
      sorted.map((event) => event.sequence),
      sorted.map((event) => event.idempotencyKey),
      sorted.map((event) => event.contentDigest),
      sorted.map((event) => event.outcome),
      sorted.map((event) => event.duplicateOf),
      sorted.map((event) => event.receivedAt),
      `[${sorted.map((event) => event.payload).join(",")}]`,
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

/** The bookings of events in the log. */
export async function findBookingKeys(
  client: Queryable,
  ids: string[],
): Promise<{ id: string; bookingKey: Buffer; partner: string; reference: string }[]> {
  const { rows } = await client.query<{ id: string; bookingKey: Buffer; partner: string; reference: string }>(
    `select id, booking_key as "bookingKey", partner, reference from booking_events where id = any($1)`,
    [ids],
  );
  return rows;
}

export interface EarlierCreate {
  bookingKey: Buffer;
  contentDigest: Buffer;
  /** Of the newest such create. */
  sequence: number;
}

/**
 * For each pair of booking and content: the newest create without an idempotency key that counts in the fold.
 * Pairs without one are left out.
 */
export async function findEarlierCreates(
  client: Queryable,
  pairs: { bookingKey: Buffer; contentDigest: Buffer }[],
): Promise<EarlierCreate[]> {
  const { rows } = await client.query<EarlierCreate>(
    `select wanted.booking_key as "bookingKey", wanted.content_digest as "contentDigest", newest.sequence
     from unnest($1::bytea[], $2::bytea[]) as wanted (booking_key, content_digest)
     cross join lateral (
       select sequence
       from booking_events
       where booking_key = wanted.booking_key and content_digest = wanted.content_digest
         and kind = 'create' and idempotency_key is null
       order by sequence desc
       limit 1
     ) as newest`,
    [pairs.map(({ bookingKey }) => bookingKey), pairs.map(({ contentDigest }) => contentDigest)],
  );
  return rows;
}

/** What the fold needs of an event in the log. */
export interface LoggedEvent {
  id: string;
  bookingKey: Buffer;
  kind: EventKind;
  sequence: number;
  hasIdempotencyKey: boolean;
  contentDigest: Buffer;
  outcome: Outcome;
  receivedAt: Date;
}

/** All events of the bookings that count in the fold, in sequence order. */
export async function readHistories(client: Queryable, bookingKeys: Buffer[]): Promise<LoggedEvent[]> {
  const { rows } = await client.query<LoggedEvent>(
    `select id, booking_key as "bookingKey", kind, sequence, idempotency_key is not null as "hasIdempotencyKey",
       content_digest as "contentDigest", outcome, received_at as "receivedAt"
     from booking_events
     where booking_key = any($1) and duplicate_of is null
     order by sequence`,
    [bookingKeys],
  );
  return rows;
}

/** Records outcomes anew after a late event has changed what other events did. */
export async function updateOutcomes(
  client: Queryable,
  outcomes: { id: string; outcome: Outcome; duplicateOf: string | null }[],
): Promise<void> {
  await client.query(
    `update booking_events set outcome = changed.outcome, duplicate_of = changed.duplicate_of
     from unnest($1::uuid[], $2::text[], $3::uuid[]) as changed (id, outcome, duplicate_of)
     where booking_events.id = changed.id`,
    [
      outcomes.map(({ id }) => id),
      outcomes.map(({ outcome }) => outcome),
      outcomes.map(({ duplicateOf }) => duplicateOf),
    ],
  );
}

/** An event as an operator sees it. */
export interface EventDetails {
  id: string;
  partner: string;
  kind: EventKind;
  reference: string;
  sequence: number;
  idempotencyKey: string | null;
  outcome: Outcome;
  duplicateOf: string | null;
  receivedAt: Date;
  processedAt: Date;
}

const eventDetails = `id, partner, kind, reference, sequence, idempotency_key as "idempotencyKey", outcome,
  duplicate_of as "duplicateOf", received_at as "receivedAt", processed_at as "processedAt"`;

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

/** A booking's events, oldest first. */
export async function listBookingEvents(client: Queryable, bookingKey: Buffer): Promise<EventDetails[]> {
  const { rows } = await client.query<EventDetails>(
    `select ${eventDetails} from booking_events where booking_key = $1 order by sequence`,
    [bookingKey],
  );
  return rows;
}

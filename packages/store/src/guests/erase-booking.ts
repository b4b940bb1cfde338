import type { ReferenceKind } from "@booking-events/schema";
import type pg from "pg";
import { allowLongStatements, inTransaction, type Queryable } from "../connect/database.ts";
import { appendChanges } from "../tables/booking-changes.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { lockBookings, type StoredBooking } from "../tables/bookings.ts";
import type { DigestKey } from "./digest-key.ts";
import { type ErasedIdentity, eraseIdentity, findErased, lockOf } from "./erased-bookings.ts";

/** A booking with a hundred thousand events takes seconds. */
const statementTimeoutMs = 15 * 60 * 1_000;

/** A booking to erase, which may not be in `bookings`. */
export interface BookingToErase {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  /** One of its events. */
  event: { id: string; sequence: number; receivedAt: Date };
}

/** What erasing has emptied. */
export interface ErasedCounts {
  bookings: number;
  events: number;
  deadLetters: number;
}

/**
 * Erases a booking: its content, its reference, its idempotency keys and its dead letters. A row stays that only a
 * keyed hash identifies. It keeps events from bringing the booking back, those of a booking that was never stored too.
 * Readers of the feed get a change. Erasing it again empties what has come since, such as a dead letter.
 *
 * The locks are taken in the worker's order. An event that a worker applies at the same time is either erased too, or
 * finds that its booking has been erased.
 *
 * @param options.feed the booking's changes, from {@link findChangesOf}
 */
export function eraseBooking(
  pool: pg.Pool,
  key: DigestKey,
  booking: BookingToErase,
  options: { erasureId: string; by: string; feed: ChangesOf },
): Promise<ErasedCounts> {
  const plainKey = bookingKey(booking.partner, booking.referenceKind, booking.reference);
  const identity = eraseIdentity(key, plainKey);
  return inTransaction(pool, async (connection) => {
    const client = await allowLongStatements(connection, statementTimeoutMs);
    await client.query("select pg_advisory_xact_lock($1)", [lockOf(key, plainKey)]);
    const wasErased = (await findErased(client, key, [plainKey])).size > 0;
    const stored = wasErased ? undefined : await lockOrInsert(client, plainKey, booking, identity);
    const counts = {
      events: await emptyEvents(client, plainKey, identity),
      deadLetters: await emptyDeadLettersOf(client, booking, options.by),
      bookings: wasErased ? 0 : await emptyBooking(client, plainKey, identity, stored?.revision ?? -1),
    };
    await countErased(client, options.erasureId, counts);
    await eraseFromFeed(client, booking, identity, { stored, feed: options.feed });
    return counts;
  });
}

/** @returns undefined if there was no such booking */
async function lockOrInsert(
  client: Queryable,
  plainKey: Buffer,
  { partner, referenceKind, event }: BookingToErase,
  { reference }: ErasedIdentity,
): Promise<StoredBooking | undefined> {
  // Under its plain key at first: a worker that inserts the booking at the same time waits for this, or this for it.
  const { rowCount } = await client.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, last_sequence,
       revision, created_at, updated_at, deleted_at)
     values ($1, $2, $3, $4, 'deleted', $5, $6, $6, 0, $7, $7, $7)
     on conflict (booking_key) do nothing`,
    [plainKey, partner, referenceKind, reference, event.id, event.sequence, event.receivedAt],
  );
  const [booking] = await lockBookings(client, [plainKey]);
  return rowCount === 1 ? undefined : booking;
}

async function emptyEvents(client: Queryable, plainKey: Buffer, identity: ErasedIdentity): Promise<number> {
  const { rowCount } = await client.query(
    `update booking_events set booking_key = $2, reference = $3, payload = null, content_digest = null,
       idempotency_key = null
     where booking_key = $1`,
    [plainKey, identity.bookingKey, identity.reference],
  );
  return rowCount ?? 0;
}

/** What stays of an erased booking besides its columns that are never null. */
const keptColumns = ["deleted_at", "erased_at", "guest_hashes"];

async function emptyBooking(
  client: Queryable,
  plainKey: Buffer,
  identity: ErasedIdentity,
  revisionBefore: number,
): Promise<number> {
  // Columns that are added later are emptied too.
  const { rows: columns } = await client.query<{ name: string }>(
    `select quote_ident(attname) as name from pg_attribute
     where attrelid = 'bookings'::regclass and attnum > 0 and not attisdropped and not attnotnull
       and attgenerated = '' and attname <> all ($1)`,
    [keptColumns],
  );
  const { rowCount } = await client.query(
    `update bookings set booking_key = $2, reference = $3, state = 'deleted', revision = $4,
       deleted_at = coalesce(deleted_at, now()), erased_at = now(), guest_hashes = '{}',
       ${columns.map(({ name }) => `${name} = null`).join(", ")}
     where booking_key = $1`,
    [plainKey, identity.bookingKey, identity.reference, revisionBefore + 1],
  );
  return rowCount ?? 0;
}

function emptyDeadLettersOf(client: Queryable, booking: BookingToErase, by: string): Promise<number> {
  const isOfBooking = "partner = $3 and reference_kind = $4 and reference = $5";
  return emptyDeadLetters(client, by, isOfBooking, [booking.partner, booking.referenceKind, booking.reference]);
}

/** Empties dead letters by the ids of their events: those that no worker could read have no reference. */
export function eraseDeadLetters(pool: pg.Pool, eventIds: string[], options: { erasureId: string; by: string }) {
  return inTransaction(pool, async (client) => {
    const deadLetters = await emptyDeadLetters(client, options.by, "event_id = any($3)", [eventIds]);
    await countErased(client, options.erasureId, { bookings: 0, events: 0, deadLetters });
    return deadLetters;
  });
}

async function emptyDeadLetters(client: Queryable, by: string, where: string, parameters: unknown[]): Promise<number> {
  const { rowCount } = await client.query(
    `update dead_letters set envelope = $2, reference = null, error = '', resolution = 'erased',
       resolved_at = coalesce(resolved_at, clock_timestamp()), resolved_by = coalesce(resolved_by, $1)
     where envelope <> $2 and ${where}`,
    [by, Buffer.alloc(0), ...parameters],
  );
  return rowCount ?? 0;
}

/** The changes of one booking in the feed. */
export interface ChangesOf {
  ids: number[];
  /** Changes after this one have not been looked at. */
  upTo: number;
}

/**
 * Finds the changes of bookings in the feed. No index leads from a booking to its changes, since nothing else needs
 * one: this reads the whole feed once.
 *
 * @returns the changes of each booking, in the same order
 */
export function findChangesOf(pool: pg.Pool, bookings: readonly BookingToErase[]): Promise<ChangesOf[]> {
  return inTransaction(pool, async (connection) => {
    const client = await allowLongStatements(connection, statementTimeoutMs);
    const { rows: positions } = await client.query<{ upTo: number }>(`select last_id as "upTo" from feed_position`);
    const upTo = positions[0]?.upTo ?? 0;
    const { rows } = await client.query<{ number: number; id: number }>(
      `select wanted.number::int, id
       from unnest($1::text[], $2::text[], $3::text[]) with ordinality
         as wanted (partner, reference_kind, reference, number)
       join booking_changes using (partner, reference_kind, reference)
       where id <= $4`,
      [
        bookings.map(({ partner }) => partner),
        bookings.map(({ referenceKind }) => referenceKind),
        bookings.map(({ reference }) => reference),
        upTo,
      ],
    );
    const byBooking = Map.groupBy(rows, ({ number }) => number);
    return bookings.map((_, index) => ({ ids: (byBooking.get(index + 1) ?? []).map(({ id }) => id), upTo }));
  });
}

async function eraseFromFeed(
  client: Queryable,
  { partner, referenceKind, reference }: BookingToErase,
  identity: ErasedIdentity,
  { stored, feed }: { stored: StoredBooking | undefined; feed: ChangesOf },
): Promise<void> {
  // Two statements, since one would read the whole feed.
  await client.query("update booking_changes set reference = $1 where id = any($2)", [identity.reference, feed.ids]);
  await client.query(
    `update booking_changes set reference = $1
     where id > $2 and partner = $3 and reference_kind = $4 and reference = $5`,
    [identity.reference, feed.upTo, partner, referenceKind, reference],
  );
  // Nobody has heard of a booking that was never stored.
  if (stored === undefined) return;
  const { eventId, sequence } = stored.state;
  const change = { change: "erased", eventId, sequence, previousEventId: stored.feedEventId } as const;
  const { reference: marker } = identity;
  await appendChanges(client, [
    { partner, referenceKind, reference: marker, revision: stored.revision + 1, ...change },
  ]);
}

/** Records that an erasure begins. */
export async function beginErasure(
  client: Queryable,
  erasure: { by: string; reason: string; search: "email" | "phone" | "reference" },
): Promise<string> {
  const { rows } = await client.query<{ id: string }>(
    "insert into erasures (erased_by, reason, search) values ($1, $2, $3) returning id",
    [erasure.by, erasure.reason, erasure.search],
  );
  return rows[0]?.id ?? "";
}

async function countErased(client: Queryable, erasureId: string, counts: ErasedCounts): Promise<void> {
  await client.query(
    `update erasures set bookings = bookings + $2, events = events + $3, dead_letters = dead_letters + $4
     where id = $1`,
    [erasureId, counts.bookings, counts.events, counts.deadLetters],
  );
}

/** Records an event that no worker could read, and that was taken out of the queue. It leaves an empty dead letter. */
export async function recordErasedLetter(client: Queryable, eventId: string, by: string): Promise<void> {
  await client.query(
    `insert into dead_letters (event_id, error_code, error, attempts, envelope, resolved_at, resolved_by, resolution)
     values ($1, 'ERASED', '', 0, '', clock_timestamp(), $2, 'erased')
     on conflict (event_id) do nothing`,
    [eventId, by],
  );
}

/** Records that an event has been taken out of the queue. */
export async function countErasedJob(client: Queryable, erasureId: string): Promise<void> {
  await client.query("update erasures set jobs = jobs + 1 where id = $1", [erasureId]);
}

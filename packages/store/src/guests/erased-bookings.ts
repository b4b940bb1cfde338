import { byteas } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import { type EventToInsert, insertMissingEvent } from "../tables/booking-events.ts";
import { bookingKey } from "../tables/booking-key.ts";
import type { BookingIdentity } from "../tables/bookings.ts";
import type { DigestKey } from "./digest-key.ts";

/** What an event of an erased booking may leave in the log. Its key is that of the booking before it was erased. */
type ErasedEvent = Pick<
  EventToInsert,
  "id" | "partner" | "kind" | "referenceKind" | "bookingKey" | "sequence" | "receivedAt"
>;

export type ErasedIdentity = Pick<BookingIdentity, "bookingKey" | "reference">;

const markerCharacters = 32;

export function eraseIdentity(key: DigestKey, bookingKey: Buffer): ErasedIdentity {
  const hashed = key.hashBookingKey(bookingKey);
  return { bookingKey: hashed, reference: `erased-${hashed.toString("hex").slice(0, markerCharacters)}` };
}

/**
 * Finds out which bookings have been erased, by an index that has only those: it stays small, however many bookings
 * there are. The keys come from a subquery, because the planner would estimate each key that it sees. An erased booking
 * stays erased, so this needs no lock. But whoever inserts a booking must ask again afterwards: the booking may have
 * been erased since.
 *
 * @returns the bookings' keys from before the erasure, in hex
 */
export async function findErased(client: Queryable, key: DigestKey, bookingKeys: Buffer[]): Promise<Set<string>> {
  const hashed = bookingKeys.map(key.hashBookingKey);
  const { rows } = await client.query<{ bookingKey: Buffer }>(
    `select booking_key as "bookingKey"
     from bookings
     where booking_key = any((select $1::bytea[])::bytea[]) and erased_at is not null`,
    [byteas(hashed)],
  );
  const isErased = (other: Buffer) => rows.some((row) => row.bookingKey.equals(other));
  return new Set(
    rows.length === 0
      ? []
      : bookingKeys.filter((_, index) => isErased(hashed[index] as Buffer)).map((plain) => plain.toString("hex")),
  );
}

/** @returns the keys of a partner's erased bookings that have this reference since */
export async function findErasedKeys(
  client: Queryable,
  { partner, reference }: { partner: string; reference: string },
): Promise<Buffer[]> {
  const { rows } = await client.query<{ bookingKey: Buffer }>(
    `select booking_key as "bookingKey" from bookings where reference = $1 and partner = $2 and erased_at is not null`,
    [reference, partner],
  );
  return rows.map(({ bookingKey }) => bookingKey);
}

/** The event's entry in the log, without its content, reference and key. */
export function toErasedEntry(key: DigestKey, event: ErasedEvent): EventToInsert {
  const { id, partner, kind, referenceKind, sequence, receivedAt } = event;
  return {
    ...eraseIdentity(key, event.bookingKey),
    id,
    partner,
    kind,
    referenceKind,
    sequence,
    idempotencyKey: null,
    payload: null,
    contentDigest: null,
    outcome: "erased",
    duplicateOf: null,
    warnings: [],
    after: null,
    receivedAt,
  };
}

/**
 * Records an event if its booking has been erased. While this transaction runs, the booking can't be erased.
 *
 * @returns whether the booking has been erased
 */
export async function recordIfErased(
  client: Queryable,
  key: DigestKey,
  event: Omit<ErasedEvent, "bookingKey"> & { reference: string },
): Promise<boolean> {
  const plain = bookingKey(event.partner, event.referenceKind, event.reference);
  await client.query("select pg_advisory_xact_lock_shared($1)", [lockOf(key, plain)]);
  if ((await findErased(client, key, [plain])).size === 0) return false;
  await recordErased(client, key, { ...event, bookingKey: plain });
  return true;
}

/** Records an event of an erased booking, unless it is in the log. */
export async function recordErased(client: Queryable, key: DigestKey, event: ErasedEvent): Promise<void> {
  await insertMissingEvent(client, toErasedEntry(key, event));
}

/** A number for an advisory lock that keeps a booking from being erased. The key makes it differ from other locks. */
export function lockOf(key: DigestKey, bookingKey: Buffer): string {
  return key.hashBookingKey(bookingKey).readBigInt64BE().toString();
}

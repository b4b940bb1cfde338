import type { ReferenceKind } from "@booking-events/schema";
import type { NormalisedBooking } from "@booking-events/schema/normalise";
import { byteas } from "../connect/binary-arrays.ts";
import type { Queryable } from "../connect/queryable.ts";
import type { DigestKey } from "../guests/digest-key.ts";
import { findErased } from "../guests/erased-bookings.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { selectContent } from "../tables/content-columns.ts";

export interface PartnerReference {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
}

export interface PartnerBooking {
  state: "active" | "deleted";
  revision: number;
  /** The event that decided the state. */
  decidedBy: string;
  /** When that event was received. */
  updatedAt: Date;
  /** Null: only deletes have been received, or the content was removed. */
  payload: unknown;
  /** What was asked for. Of a deleted booking, what it held. */
  readings: Partial<NormalisedBooking>;
}

/**
 * @param booking.readings what is wanted of the values that were read from the content
 * @returns undefined if there is no such booking; `erased` if an operator has erased it
 */
export async function findPartnerBooking(
  client: Queryable,
  digestKey: DigestKey,
  booking: PartnerReference & { readings?: readonly (keyof NormalisedBooking)[] },
): Promise<PartnerBooking | "erased" | undefined> {
  const { readings: wanted = [] } = booking;
  const key = bookingKey(booking.partner, booking.referenceKind, booking.reference);
  const { rows } = await client.query<PartnerBooking & Partial<NormalisedBooking>>(
    `select ${[`state, revision, event_id as "decidedBy", updated_at as "updatedAt", payload`, ...wanted.map(selectContent)].join(", ")}
     from bookings
     where booking_key = $1`,
    [key],
  );
  const [row] = rows;
  if (row !== undefined) return { ...row, readings: Object.fromEntries(wanted.map((name) => [name, row[name]])) };
  return (await findErased(client, digestKey, [key])).size === 0 ? undefined : "erased";
}

export interface ListedBooking {
  /** See {@link bookingKey}. */
  key: Buffer;
  /** The SHA-256 of the canonical content, in hex. Undefined: the partner compares no contents. */
  digest: string | undefined;
}

export interface Comparison {
  result: "same" | "different" | "deleted-here" | "missing" | "erased";
  /** When the event was received that decided the state. Null: there is no such booking, or it was erased. */
  updatedAt: Date | null;
}

/** Compares bookings without reading their contents. @returns one result for each booking, in the same order */
export async function compareBookings(
  client: Queryable,
  digestKey: DigestKey,
  listed: readonly ListedBooking[],
): Promise<Comparison[]> {
  const { rows } = await client.query<StoredDigest>(
    `select booking_key as "bookingKey", state, encode(content_digest, 'hex') as digest, updated_at as "updatedAt"
     from bookings
     where booking_key = any($1::bytea[])`,
    [byteas(listed.map(({ key }) => key))],
  );
  const stored = new Map(rows.map((row) => [row.bookingKey.toString("latin1"), row]));
  const absent = listed.map(({ key }) => key).filter((key) => !stored.has(key.toString("latin1")));
  const erased = absent.length === 0 ? new Set() : await findErased(client, digestKey, absent);
  return listed.map(({ key, digest }) => {
    const booking = stored.get(key.toString("latin1"));
    if (booking === undefined)
      return { result: erased.has(key.toString("hex")) ? "erased" : "missing", updatedAt: null };
    const { state, updatedAt } = booking;
    if (state === "deleted") return { result: "deleted-here", updatedAt };
    const isSame = digest === undefined || booking.digest === digestKey.digestContent(digest);
    return { result: isSame ? "same" : "different", updatedAt };
  });
}

interface StoredDigest {
  bookingKey: Buffer;
  state: "active" | "deleted";
  digest: string | null;
  updatedAt: Date;
}

export interface PartnerBookingsPosition {
  /** As PostgreSQL prints it: a `Date` has no microseconds. */
  createdAt: string;
  key: Buffer;
}

export const startOfPartnerBookings: PartnerBookingsPosition = { createdAt: "-infinity", key: Buffer.alloc(0) };

export interface ListedHere {
  key: Buffer;
  reference: string;
  referenceKind: ReferenceKind;
  state: "active" | "deleted";
  createdAt: string;
  updatedAt: Date;
}

/**
 * Reads a partner's bookings in the order of their creation, erased ones included. The page is limited by the rows that
 * are read, not by those that are active, so its cost does not depend on how many were deleted.
 *
 * @param createdBefore later bookings are left out
 */
export async function listPartnerBookings(
  client: Queryable,
  partner: string,
  range: { after: PartnerBookingsPosition; createdBefore: Date; limit: number },
): Promise<ListedHere[]> {
  const { rows } = await client.query<ListedHere>(
    `select booking_key as key, reference, reference_kind as "referenceKind", state, created_at::text as "createdAt",
       updated_at as "updatedAt"
     from bookings
     where partner = $1 and (created_at, booking_key) > ($2::timestamptz, $3) and created_at <= $4
     order by created_at, booking_key
     limit $5`,
    [partner, range.after.createdAt, range.after.key, range.createdBefore, range.limit],
  );
  return rows;
}

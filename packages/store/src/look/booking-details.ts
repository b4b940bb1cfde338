import type { ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";

export interface BookingDetails {
  partner: string;
  referenceKind: ReferenceKind;
  reference: string;
  state: "active" | "deleted";
  sequence: number;
  payload: unknown;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
  /** When the content of the deleted booking was removed; null: it was not. */
  contentRemovedAt: Date | null;
}

export async function findBookings(
  client: Queryable,
  bookingKeys: Buffer[],
): Promise<(BookingDetails & { bookingKey: Buffer })[]> {
  const { rows } = await client.query<BookingDetails & { bookingKey: Buffer }>(
    `select booking_key as "bookingKey", partner, reference_kind as "referenceKind", reference, state, sequence, payload,
       created_at as "createdAt", updated_at as "updatedAt", deleted_at as "deletedAt",
       content_removed_at as "contentRemovedAt"
     from bookings
     where booking_key = any($1)`,
    [bookingKeys],
  );
  return rows;
}

import type { ReferenceKind } from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";

/** A field of which the read model could not normalise some values. */
export interface UnreadableValues {
  partner: string;
  /** The field's name in the contract. */
  field: string;
  /** How many active bookings have such a value. */
  bookings: number;
  /** One of them. */
  exampleReference: string;
  exampleReferenceKind: ReferenceKind;
}

/** Reads all bookings, so on a large table the statement time-out ends it. */
export async function countUnreadableValues(
  client: Queryable,
  { partner = null }: { partner?: string | null | undefined },
): Promise<UnreadableValues[]> {
  const { rows } = await client.query<UnreadableValues>(
    `select partner, field, bookings, example_reference as "exampleReference",
       example_reference_kind as "exampleReferenceKind"
     from booking_details_unreadable
     where $1::text is null or partner = $1
     order by bookings desc, partner, field`,
    [partner],
  );
  return rows;
}

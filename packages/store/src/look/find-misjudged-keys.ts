import type { Queryable } from "../connect/queryable.ts";

/** What should be recorded of an event with an idempotency key, and is not. */
export interface MisjudgedKey {
  id: string;
  isDuplicate: boolean;
  isReuse: boolean;
}

/**
 * Finds events with idempotency keys whose recorded outcome differs from what the order of receipt says.
 *
 * @param limit for each booking
 * @returns those of each booking, in the same order
 */
export async function findMisjudgedKeys(
  client: Queryable,
  bookingKeys: Buffer[],
  limit: number,
): Promise<MisjudgedKey[][]> {
  const { rows } = await client.query<MisjudgedKey & { number: number }>(
    `select number::int, misjudged.*
     from unnest($1::bytea[]) with ordinality as booking (key, number)
     cross join lateral (
       select id, not is_first_with_content as "isDuplicate", is_first_with_content and not is_first_use as "isReuse"
       from (
         select id, duplicate_of, warnings,
           row_number() over (partition by idempotency_key order by sequence, id) = 1 as is_first_use,
           row_number() over (partition by idempotency_key, kind, content_digest order by sequence, id) = 1
             as is_first_with_content
         from booking_events
         where booking_key = booking.key and idempotency_key is not null
       ) as event
       where (duplicate_of is null) <> is_first_with_content
         or ('key-reused' = any (warnings)) <> (is_first_with_content and not is_first_use)
       limit $2
     ) as misjudged`,
    [bookingKeys, limit],
  );
  const byBooking = Map.groupBy(rows, ({ number }) => number);
  return bookingKeys.map((_, index) =>
    (byBooking.get(index + 1) ?? []).map(({ id, isDuplicate, isReuse }) => ({ id, isDuplicate, isReuse })),
  );
}

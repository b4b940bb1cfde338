import type { Queryable } from "../connect/queryable.ts";

/**
 * Finds bookings that hold another payload than the event that sent their content, as far as the log has it, and active
 * ones that hold none.
 */
export async function findWrongPayloads(client: Queryable, bookingKeys: Buffer[]): Promise<Buffer[]> {
  const { rows } = await client.query<{ bookingKey: Buffer }>(
    `select booking_key as "bookingKey"
     from bookings left join lateral (
       select payload from booking_events where id = content_event_id limit 1
     ) as sent on true
     where booking_key = any($1)
       and (bookings.payload is distinct from coalesce(sent.payload, bookings.payload)
         or (state = 'active' and bookings.payload is null))`,
    [bookingKeys],
  );
  return rows.map(({ bookingKey }) => bookingKey);
}

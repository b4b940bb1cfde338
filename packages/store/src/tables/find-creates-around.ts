import type { CreatesAround } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import { digestToBytes } from "./booking-events.ts";
import { boundIds } from "./event-ids.ts";

/** @returns for each place, in the same order, the creates around it that count in the fold */
export async function findCreatesAround(
  client: Queryable,
  places: { bookingKey: Buffer; contentDigest: string; sequence: number; id: string; firstId?: string }[],
): Promise<CreatesAround[]> {
  const ofContent = `from booking_events
       where booking_key = place.booking_key and content_digest = place.content_digest
         and kind = 'create' and idempotency_key is null and booking_events.id >= place.first_id
         and booking_events.id >= $5`;
  const { rows } = await client.query<CreatesAround>(
    `select earlier.sequence as earlier, next.id as "nextId", next.sequence as "nextSequence"
     from unnest($1::bytea[], $2::bytea[], $3::bigint[], $4::uuid[], $6::uuid[]) with ordinality
       as place (booking_key, content_digest, sequence, id, first_id, number)
     left join lateral (
       select sequence ${ofContent} and (sequence, id) < (place.sequence, place.id)
       order by sequence desc limit 1
     ) as earlier on true
     left join lateral (
       select * from (
         select id, sequence ${ofContent} and (sequence, id) > (place.sequence, place.id)
         order by sequence fetch first row with ties
       ) as first order by id limit 1
     ) as next on true
     order by place.number`,
    [
      places.map(({ bookingKey }) => bookingKey),
      places.map(({ contentDigest }) => digestToBytes(contentDigest)),
      places.map(({ sequence }) => sequence),
      places.map(({ id }) => id),
      ...boundIds(places),
    ],
  );
  return rows;
}

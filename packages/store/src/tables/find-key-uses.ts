import type { KeyUses } from "@booking-events/bookings";
import type { EventKind } from "@booking-events/schema";
import type { Queryable } from "../connect/queryable.ts";
import { digestToBytes } from "./booking-events.ts";
import { boundIds } from "./event-ids.ts";

/**
 * Each of the two lookups finds one row by an index, however many events of the booking have the key.
 *
 * @returns for each event, in the same order, how its booking's log has used the event's key
 */
export async function findKeyUses(
  client: Queryable,
  events: {
    bookingKey: Buffer;
    idempotencyKey: string | null;
    kind: EventKind;
    contentDigest: string;
    firstId?: string;
  }[],
): Promise<KeyUses[]> {
  const counting = `from booking_events
       where booking_key = event.booking_key and idempotency_key = event.idempotency_key and duplicate_of is null
         and id >= event.first_id and id >= $5`;
  const { rows } = await client.query<KeyUsesRow>(
    `select first.id as "firstId", first.sequence as "firstSequence", first.kind as "firstKind",
       first.kind = event.kind and first.content_digest = event.content_digest as "isFirstSame",
       reusing.id as "reusingId", reusing.sequence as "reusingSequence"
     from unnest($1::bytea[], $2::text[], $3::text[], $4::bytea[], $6::uuid[]) with ordinality
       as event (booking_key, idempotency_key, kind, content_digest, first_id, number)
     left join lateral (
       select id, sequence, kind, content_digest ${counting} and 'key-reused' <> all (warnings) limit 1
     ) as first on true
     left join lateral (
       select id, sequence ${counting} and 'key-reused' = any (warnings)
         and kind = event.kind and content_digest = event.content_digest
       limit 1
     ) as reusing on true
     order by event.number`,
    [
      events.map(({ bookingKey }) => bookingKey),
      events.map(({ idempotencyKey }) => idempotencyKey),
      events.map(({ kind }) => kind),
      events.map(({ contentDigest }) => digestToBytes(contentDigest)),
      ...boundIds(events),
    ],
  );
  return rows.map(toKeyUses);
}

interface KeyUsesRow {
  firstId: string | null;
  firstSequence: number;
  firstKind: EventKind;
  isFirstSame: boolean;
  reusingId: string | null;
  reusingSequence: number;
}

function toKeyUses({ firstId, firstSequence, firstKind, isFirstSame, ...reusing }: KeyUsesRow): KeyUses {
  const first = firstId === null ? null : { id: firstId, sequence: firstSequence, kind: firstKind };
  if (first !== null && isFirstSame) return { first, same: first };
  const { reusingId, reusingSequence } = reusing;
  return { first, same: reusingId === null ? null : { id: reusingId, sequence: reusingSequence } };
}

import type { BookingState } from "@booking-events/bookings";
import type { Queryable } from "../connect/queryable.ts";
import type { BookingIdentity } from "../tables/bookings.ts";
import { firstIdAt } from "../tables/event-ids.ts";

/** A booking now and at a time. */
export interface RestorableBooking extends BookingIdentity {
  state: BookingState["state"];
  lastSequence: number;
  isErased: boolean;
  /** Null: the log has no event of the booking from until then. */
  stateThen: BookingState["state"] | null;
  /** What the booking held then, as JSON text; of a deleted booking, what it had held. Null: it is gone, or never was. */
  payloadThen: string | null;
  /** See `bookings.default_country`. */
  defaultCountryThen: string | null;
  hasSameContent: boolean;
  /** The names of the fields that differ. */
  changedFields: string[];
  /** The log has the booking's first event. */
  isLogWhole: boolean;
  /** How many events of others than the secret have changed the booking since. 0 if no secret is given. */
  changesOfOthers: number;
}

const changes = "('created', 'updated', 'deleted', 'recreated')";
/** An id has the time of ingest's clock, and the sequence that of Redis'. They differ by less. */
const clockSkewMs = 24 * 60 * 60 * 1_000;

/** Reads bookings as they are, and as they were at a place in the order of receipt. Bookings that do not exist are left out. */
export async function findRestorable(
  client: Queryable,
  bookingKeys: Buffer[],
  { sequence, secret }: { sequence: number; secret: string | undefined },
): Promise<RestorableBooking[]> {
  const { rows } = await client.query<RestorableBooking>(
    `select booking.booking_key as "bookingKey", booking.booking_id as "bookingId", booking.partner,
       booking.reference_kind as "referenceKind", booking.reference, booking.state,
       booking.last_sequence as "lastSequence", booking.erased_at is not null as "isErased",
       event.state_after as "stateThen", content.payload::text as "payloadThen",
       content.default_country as "defaultCountryThen",
       coalesce(content.digest = booking.content_digest, false) as "hasSameContent",
       array(
         select key
         from (select * from jsonb_each(booking.payload)) as now (key, value)
         full join (select * from jsonb_each(content.payload)) as before (key, old_value) using (key)
         where value is distinct from old_value and content.payload is not null
         order by key collate "C"
       ) as "changedFields",
       coalesce(first.received_at = booking.created_at, false) as "isLogWhole",
       case when $3::text is null then 0 else (
         select count(*)::int
         from booking_events
         where booking_key = booking.booking_key and duplicate_of is null and sequence > $2
           and secret_id is distinct from $3 and outcome in ${changes}
       ) end as "changesOfOthers"
     from bookings as booking
     left join lateral (
       select id, kind, state_after, content_from
       from booking_events
       where booking_key = booking.booking_key and duplicate_of is null and state_after is not null and sequence <= $2
       order by sequence desc, id desc
       limit 1
     ) as event on true
     left join lateral (
       select payload, content_digest, default_country
       from booking_events
       where id = coalesce(event.content_from, event.id) and (event.content_from is not null or event.kind <> 'delete')
       limit 1
     ) as source on true
     cross join lateral (
       -- The booking may still have what the log has lost.
       select booking.content_event_id = event.content_from and source.payload is null as is_kept
     ) as kept
     cross join lateral (
       select case when is_kept then booking.payload else source.payload end as payload,
         case when is_kept then booking.content_digest else source.content_digest end as digest,
         case when is_kept then booking.default_country else source.default_country end as default_country
     ) as content
     left join lateral (
       select received_at
       from booking_events
       where booking_key = booking.booking_key and duplicate_of is null and state_after is not null
       order by sequence, id
       limit 1
     ) as first on true
     where booking.booking_key = any((select $1::bytea[])::bytea[])
     order by booking.booking_key`,
    [bookingKeys, sequence, secret ?? null],
  );
  return rows;
}

/** Finds events of a partner that were received after a place in the order, and may have changed their bookings. */
export async function findTouching(
  client: Queryable,
  filter: { partner: string; secret: string | undefined; sequence: number; afterId: string | undefined; limit: number },
): Promise<{ id: string; bookingKey: Buffer }[]> {
  const { partner, secret, sequence, afterId, limit } = filter;
  const firstId = firstIdAt(new Date(Math.max(sequence / 1_000 - clockSkewMs, 0)));
  const { rows } = await client.query<{ id: string; bookingKey: Buffer }>(
    `select id, booking_key as "bookingKey"
     from booking_events
     where partner = $1 and ($2::text is null or secret_id = $2) and sequence > $3 and id > $4 and outcome in ${changes}
     order by id
     limit $5`,
    [partner, secret ?? null, sequence, afterId ?? firstId, limit],
  );
  return rows;
}

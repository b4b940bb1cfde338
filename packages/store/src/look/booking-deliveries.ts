import type { Queryable } from "../connect/queryable.ts";
import type { FeedChange } from "../tables/booking-changes.ts";

/** A change of a booking in the feed. */
export interface BookingChange {
  id: number;
  change: FeedChange;
  revision: number;
  eventId: string;
  changedAt: Date;
}

/** How far a reader of the feed has come with a booking. */
export interface BookingDelivery {
  reader: string;
  isSubscription: boolean;
  /** The subscription is not for bookings of this partner. */
  isOtherPartner: boolean;
  pausedAt: Date | null;
  /** Changes of the booking up to this id have been dealt with: delivered, or left out by the reader's filter. */
  doneId: number;
  /** The change that waits for another attempt, or whose attempts are used up. Null: none. */
  changeId: number | null;
  attempts: number;
  lastFailedAt: Date | null;
  retryAt: Date | null;
  diedAt: Date | null;
  /** A class, such as `http-500`, or an error's code or name. */
  failure: string | null;
}

/** Lists the newest changes of a booking in the feed, the newest first. */
export async function listBookingChanges(
  client: Queryable,
  bookingId: string,
  limit: number,
): Promise<BookingChange[]> {
  const { rows } = await client.query<BookingChange>(
    `select id::float8 as id, change, revision, event_id as "eventId", changed_at as "changedAt"
     from booking_changes
     where booking_id = $1
     order by id desc
     limit $2`,
    [bookingId, limit],
  );
  return rows;
}

/** Lists the readers of the feed with what they have done of a booking, in the order of their names. */
export async function listBookingDeliveries(
  client: Queryable,
  booking: { bookingId: string; partner: string },
  limit: number,
): Promise<BookingDelivery[]> {
  const { rows } = await client.query<BookingDelivery>(
    `select reader.name as reader, subscription.name is not null as "isSubscription",
       coalesce($2 <> all (subscription.partners), false) as "isOtherPartner", subscription.paused_at as "pausedAt",
       -- What failed is not done, although the reader's place has passed it.
       least(
         greatest(coalesce(reader.last_id, 0), coalesce(delivery.done_id, 0)),
         coalesce(delivery.since_id, delivery.change_id) - 1
       )::float8 as "doneId",
       delivery.change_id::float8 as "changeId", coalesce(delivery.attempts, 0) as attempts,
       delivery.last_failed_at as "lastFailedAt", delivery.retry_at as "retryAt", delivery.died_at as "diedAt",
       delivery.failure
     from feed_readers as reader
     left join subscriptions as subscription on subscription.name = reader.name
     left join feed_deliveries as delivery on delivery.reader = reader.name and delivery.booking_id = $1
     order by reader.name
     limit $3`,
    [booking.bookingId, booking.partner, limit],
  );
  return rows;
}

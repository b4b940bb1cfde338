import type pg from "pg";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import type { BookingToErase } from "./booking-to-erase.ts";
import { countErased } from "./erasures.ts";

export function emptyDeadLettersOf(client: Queryable, booking: BookingToErase, by: string): Promise<number> {
  const isOfBooking = "partner = $3 and reference_kind = $4 and reference = $5";
  return emptyDeadLetters(client, by, isOfBooking, [booking.partner, booking.referenceKind, booking.reference]);
}

/** Empties dead letters by the ids of their events: those that no worker could read have no reference. */
export function eraseDeadLetters(pool: pg.Pool, eventIds: string[], options: { erasureId: string; by: string }) {
  return inTransaction(pool, async (client) => {
    const deadLetters = await emptyDeadLetters(client, options.by, "event_id = any($3)", [eventIds]);
    await countErased(client, options.erasureId, { bookings: 0, events: 0, deadLetters });
    return deadLetters;
  });
}

async function emptyDeadLetters(client: Queryable, by: string, where: string, parameters: unknown[]): Promise<number> {
  const { rowCount } = await client.query(
    `update dead_letters set envelope = $2, reference = null, consumer_trip_arrival_date = null, error = '', resolution = 'erased',
       resolved_at = coalesce(resolved_at, clock_timestamp()), resolved_by = coalesce(resolved_by, $1)
     where envelope <> $2 and ${where}`,
    [by, Buffer.alloc(0), ...parameters],
  );
  return rowCount ?? 0;
}

/** Records an event that no worker could read, and that was taken out of the queue. It leaves an empty dead letter. */
export async function recordErasedLetter(client: Queryable, eventId: string, by: string): Promise<void> {
  await client.query(
    `insert into dead_letters (event_id, error_code, error, attempts, envelope, resolved_at, resolved_by, resolution)
     values ($1, 'ERASED', '', 0, '', clock_timestamp(), $2, 'erased')
     on conflict (event_id) do nothing`,
    [eventId, by],
  );
}

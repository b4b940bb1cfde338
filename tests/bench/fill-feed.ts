import { migrate } from "@booking-events/store";
import type { BenchDatabase } from "./data-services.ts";
import { fullBooking } from "./sample-events.ts";

/** So old that a consumer of the latest state skips what has been overridden. */
const age = "interval '1 hour'";

/**
 * Fills an empty database with changes of bookings, one after the other, again and again, as if nobody had read them for
 * a while.
 *
 * @param changes a multiple of the bookings
 */
export async function fillFeed(
  database: BenchDatabase,
  { changes, bookings }: { changes: number; bookings: number },
): Promise<void> {
  const payload = `'${JSON.stringify(fullBooking).replaceAll("'", "''")}'::jsonb`;
  const revisions = changes / bookings;
  await migrate(database.url);
  await database.query("set synchronous_commit = off");
  await database.query(`
    create function pg_temp.uuid_of(kind text, n bigint) returns uuid language sql immutable
      return md5(kind || n)::uuid`);
  await database.query(`
    insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload, content_digest,
      outcome, received_at, state_after, newest_keyless_sequence)
    select pg_temp.uuid_of('event', n), 'acme', case when n <= ${bookings} then 'create' else 'update' end, 'trip',
      'TRIP-' || n % ${bookings}, sha256((n % ${bookings})::text::bytea), n, ${payload}, '\\x00', 'updated', now() - ${age},
      'active', n
    from generate_series(1, ${changes}) as n`);
  await database.query(`
    insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence,
      previous_event_id, changed_at)
    select n, pg_temp.uuid_of('booking', n % ${bookings}), 'acme', 'trip', 'TRIP-' || n % ${bookings},
      (n - 1) / ${bookings} + 1, case when n <= ${bookings} then 'created' else 'updated' end,
      pg_temp.uuid_of('event', n), n, case when n > ${bookings} then pg_temp.uuid_of('event', n - ${bookings}) end,
      now() - ${age}
    from generate_series(1, ${changes}) as n`);
  await database.query(`
    insert into bookings (booking_key, booking_id, partner, reference_kind, reference, state, event_id, sequence, payload,
      content_digest, content_event_id, newest_keyless_sequence, last_sequence, revision, created_at, updated_at)
    select sha256((n % ${bookings})::text::bytea), pg_temp.uuid_of('booking', n % ${bookings}), 'acme', 'trip',
      'TRIP-' || n % ${bookings}, 'active', pg_temp.uuid_of('event', n), n, ${payload}, decode(md5('x'), 'hex'),
      pg_temp.uuid_of('event', n), n, n, ${revisions}, now() - ${age}, now() - ${age}
    from generate_series(${changes - bookings + 1}, ${changes}) as n`);
  await database.query(`update feed_position set last_id = ${changes}`);
  await database.query("set synchronous_commit = on");
  await database.query("vacuum analyze");
  await database.query("checkpoint");
}

-- PostgreSQL roles with the least that each process needs. `ops migrate --grant` runs this after the migrations, in the
-- same transaction, as the owner of the tables, for the schema of test partners' bookings too. It is the whole truth,
-- whatever had been granted to these roles before.

do $$
declare
  roles text := 'booking_events_worker, booking_events_lookup, booking_events_ops, booking_events_reader, '
    'booking_events_webhooks, booking_events_console';
begin
  execute format('revoke all on all tables in schema %I from %s', current_schema(), roles);
  execute format('revoke all on all functions in schema %I from %s', current_schema(), roles);
  execute format('grant usage on schema %I to %s', current_schema(), roles);
end $$;

-- The worker writes data and changes no table. The log of events and the feed are only ever appended to; what an event
-- did is recorded again when another one takes a place before it.
grant select, insert, update on bookings to booking_events_worker;
grant select, insert,
  update (outcome, duplicate_of, state_after, decided_by, content_from, newest_keyless_sequence, warnings)
  on booking_events to booking_events_worker;
grant select, insert on booking_changes to booking_events_worker;
grant select, update on feed_position to booking_events_worker;
grant select, insert, update on dead_letters to booking_events_worker;
-- It removes what is too old by functions that run with the rights of the owner, and delete nothing of the last day.
grant select,
  update (retention_days, deleted_retention_days, dead_letter_retention_days, duplicate_window_hours)
  on log_retention to booking_events_worker;
grant execute on function create_log_partitions, drop_log_partition, delete_old_events, delete_old_changes,
  empty_deleted_bookings, delete_old_dead_letters, delete_old_operator_actions to booking_events_worker;
grant select, update on digest_key to booking_events_worker;
-- At its start it looks for missing migrations.
grant select on schema_migrations to booking_events_worker;
-- It exports how far the feed's readers are behind.
grant select on feed_readers, feed_deliveries to booking_events_worker;
grant select (name, paused_at) on subscriptions to booking_events_worker;
-- Whether this is the database that the queue feeds.
grant select on database_id to booking_events_worker, booking_events_lookup, booking_events_ops, booking_events_console;

-- Lookup answers partners' questions and writes nothing. It reads a booking's content only to compute a digest of it,
-- what was read of its fields for the partner that sent them, and of events no content at all.
grant select (id, partner, kind, booking_key, sequence, idempotency_key, content_digest, outcome, duplicate_of, warnings)
  on booking_events to booking_events_lookup;
grant select (booking_key, partner, reference, reference_kind, state, event_id, revision, payload, content_digest,
    created_at, updated_at, erased_at, consumer_phone, consumer_phone_is_assumed, consumer_email, consumer_language,
    consumer_nationality, consumer_currency, consumer_trip_is_international, consumer_trip_is_regional,
    consumer_trip_is_local, consumer_trip_arrival_date, consumer_trip_arrival_at, consumer_trip_return_date,
    consumer_trip_return_at, consumer_trip_departure_country_name, consumer_trip_departure_country_code,
    consumer_trip_departure_airport_code, consumer_trip_destination_country_name,
    consumer_trip_destination_country_code, consumer_trip_destination_airport_code, agent_timezone, agent_phone_number,
    agent_phone_number_is_assumed, agent_email)
  on bookings to booking_events_lookup;
grant select (key, fingerprint) on digest_key to booking_events_lookup;
grant select (event_id, partner, error_code, resolution, resolved_at, replayed_at, failed_at) on dead_letters
  to booking_events_lookup;

-- ops shows everything, marks dead letters, erases guests, and repairs bookings and their columns.
grant select on bookings, booking_details, booking_history, booking_events, booking_changes, dead_letters,
  feed_position, feed_readers, feed_deliveries, log_retention, schema_migrations to booking_events_ops;
grant update (replayed_at, replayed_by, resolved_at, resolved_by, resolution, envelope, reference, error,
    consumer_trip_arrival_date)
  on dead_letters to booking_events_ops;
grant insert on bookings, booking_events, booking_changes, dead_letters to booking_events_ops;
grant update on bookings to booking_events_ops;
grant update (booking_key, reference, payload, content_digest, idempotency_key, outcome, state_after, decided_by,
  content_from, newest_keyless_sequence, warnings) on booking_events to booking_events_ops;
grant update (reference) on booking_changes to booking_events_ops;
grant update (last_id) on feed_position to booking_events_ops;
grant select, update on digest_key to booking_events_ops;
grant select, insert, update on erasures to booking_events_ops;
-- What it has done it can add and complete, and neither change nor remove.
grant select, insert, update (ended_at, outcome, problem, did) on operator_actions to booking_events_ops;
grant execute on function remove_guest_samples to booking_events_ops;
grant update (last_id, snapshot_after, moved_at, active_id, failing_since, breaker_opened_at, probe_at), delete
  on feed_readers to booking_events_ops;
grant update, delete on feed_deliveries to booking_events_ops;
-- When a subscription gets a filter, what it was given before has to be remembered.
grant select, insert (reader, booking_id, is_inside), update (is_inside) on feed_handed to booking_events_ops;
-- Whoever may add a subscription chooses its key. Ops reads it to post a test, signed as all posts are.
grant select, insert, update, delete on subscriptions to booking_events_ops;

-- The console shows what ops shows, marks dead letters, pauses subscriptions, and lets a reader be given changes again.
-- It erases nobody, repairs nothing, and never sees what signatures and tokens are made with.
grant select on bookings, booking_details, booking_details_unreadable, booking_history, booking_events, booking_changes,
  dead_letters, feed_position, feed_readers, feed_deliveries, log_retention, schema_migrations, digest_key, erasures
  to booking_events_console;
grant update (replayed_at, replayed_by, resolved_at, resolved_by, resolution) on dead_letters to booking_events_console;
grant select, insert, update (ended_at, outcome, problem, did) on operator_actions to booking_events_console;
grant update (last_id, moved_at, active_id, failing_since, breaker_opened_at, probe_at) on feed_readers
  to booking_events_console;
grant update, delete on feed_deliveries to booking_events_console;
grant select, update (is_inside) on feed_handed to booking_events_console;
grant select (name, url, mode, payload, partners, changes, countries, arrival_from_days, arrival_to_days, from_id,
    given_id, signature, previous_key_until, paused_at, pause_reason, paused_by, created_at, created_by, updated_at),
  update (from_id, given_id, paused_at, pause_reason, paused_by, updated_at)
  on subscriptions to booking_events_console;

-- Only what is missing: a policy is created under a lock that waits for every program that follows the feed.
do $$
declare
  missing record;
begin
  for missing in
    select * from (
      values ('operate', 'feed_readers', 'booking_events_ops'), ('operate', 'feed_deliveries', 'booking_events_ops'),
        ('operate', 'feed_handed', 'booking_events_ops'),
        ('operate_in_console', 'feed_readers', 'booking_events_console'),
        ('operate_in_console', 'feed_deliveries', 'booking_events_console'),
        ('operate_in_console', 'feed_handed', 'booking_events_console')
    ) as wanted (policy, relation, role)
    where not exists (select from pg_policy where polrelid = relation::regclass and polname = policy)
  loop
    execute format('create policy %I on %I to %I using (true)', missing.policy, missing.relation, missing.role);
  end loop;
end $$;

-- Whoever reads bookings and the feed, and keeps its place there. No role can move another's reader, so give each program
-- a role of its own: create role arrivals login password '…' in role booking_events_reader; None may delete a reader, or
-- what it has to deliver: whoever may delete rows of a table may lock all of it, and others could not go on.
grant select on bookings, booking_details, booking_details_unreadable, booking_history, booking_events, booking_changes,
  feed_position, feed_deliveries, feed_handed to booking_events_reader, booking_events_webhooks;
grant execute on function booking_at
  to booking_events_ops, booking_events_reader, booking_events_webhooks, booking_events_console;
grant select, insert (name, last_id, snapshot_after), update (last_id, snapshot_after, moved_at, seen_at, active_id,
    failing_since, breaker_opened_at, probe_at)
  on feed_readers to booking_events_reader, booking_events_webhooks;
grant insert (reader, booking_id, done_id, change_id, since_id, attempts, first_failed_at, last_failed_at, retry_at,
    died_at, failure),
  update (done_id, change_id, since_id, attempts, first_failed_at, last_failed_at, retry_at, died_at, failure)
  on feed_deliveries to booking_events_reader, booking_events_webhooks;
grant insert (reader, booking_id, is_inside), update (is_inside) on feed_handed
  to booking_events_reader, booking_events_webhooks;
grant execute on function remove_spent_deliveries to booking_events_reader, booking_events_webhooks;

-- It signs posts, recognises who pulls, and pauses a subscription that takes nothing any more.
grant select, update (paused_at, pause_reason, paused_by, updated_at) on subscriptions to booking_events_webhooks;

-- Only an administrator may give this. With it, `ops doctor` sees standbys and settings, and the exporter of
-- docker-compose.yml, whose role exists only there, what it exports.
do $$
declare
  member name;
begin
  for member in
    select rolname from pg_roles
    where rolname in ('booking_events_ops', 'booking_events_exporter') and pg_has_role('pg_monitor', 'member with admin option')
  loop
    execute format('grant pg_monitor to %I', member);
  end loop;
end $$;

-- Where the bookings of test partners are, the worker removes what is older than seven days, and nobody follows changes.
do $$
begin
  if current_schema() like '%\_test\_partners' then
    grant execute on function delete_test_data to booking_events_worker;
    execute format('revoke all on schema %I from booking_events_reader, booking_events_webhooks', current_schema());
  end if;
end $$;

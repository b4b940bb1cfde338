-- Upkeep: the log gets partitions for the months to come, and what is too old is removed from all tables. Functions do
-- this with the rights of the tables' owner, because the worker's role may not change tables. So only those may call
-- them to whom that is granted.

-- They see only this schema, and objects of a session last.
select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- The smallest UUIDv7 (RFC 9562) of that time: it begins with the milliseconds since 1970.
create function first_event_id(at timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- The log's partitions of one month each. The name says the month, so no bound is parsed: booking_events_2026_11.
create function log_partitions() returns table (partition regclass, starts timestamptz, ends timestamptz)
language sql stable
set search_path from current
as $$
  select relid, month at time zone 'UTC', (month + interval '1 month') at time zone 'UTC'
  from (
    select pg_class.oid::regclass as relid, to_date(right(relname, 7), 'YYYY_MM')::timestamp as month
    from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = to_regclass('booking_events') and relname ~ '^booking_events_\d{4}_\d\d$'
  ) as named
  order by month
$$;

-- Creates partitions for this month and the months after it, if they are missing. The default partition has the events
-- of a month without one. They are moved, unless they are many: then the month stays there.
create function create_log_partitions(months_ahead integer) returns setof text
language plpgsql security definer
set search_path from current
as $$
declare
  max_moved constant integer := 50000;
  this_month constant timestamp := date_trunc('month', now() at time zone 'UTC');
  month timestamptz;
  month_end timestamptz;
  name text;
  odd integer;
begin
  for ahead in 0 .. least(months_ahead, 12) loop
    month := (this_month + make_interval(months => ahead)) at time zone 'UTC';
    month_end := (this_month + make_interval(months => ahead + 1)) at time zone 'UTC';
    continue when exists (select from log_partitions() where starts = month);
    select count(*) into odd from (
      select from booking_events_default
      where id >= first_event_id(month) and id < first_event_id(month_end)
      limit max_moved + 1
    ) as here;
    continue when odd > max_moved;
    -- "create table … partition of" would lock the whole log.
    name := 'booking_events_' || to_char(month at time zone 'UTC', 'YYYY_MM');
    execute format('create table %I (like booking_events including all)', name);
    lock table booking_events_default in access exclusive mode;
    execute format(
      'with moved as (delete from booking_events_default where id >= %L and id < %L returning *)
       insert into %I select * from moved',
      first_event_id(month), first_event_id(month_end), name
    );
    execute format(
      'alter table booking_events attach partition %I for values from (%L) to (%L)',
      name, first_event_id(month), first_event_id(month_end)
    );
    perform remove_guest_samples();
    return next name;
  end loop;
end $$;
revoke execute on function create_log_partitions from public;

-- Statistics hold samples of a column's values, and would keep those of an erased guest. No query needs those of these
-- columns; it is different with booking_key and consumer_hash. This switches them off, for new partitions of the log and
-- wherever somebody has switched them on, and removes the samples that are there. Before PostgreSQL 18, only a superuser
-- may remove them; if the owner is none, this fails.
create function remove_guest_samples() returns void
language plpgsql security definer
set search_path from current
as $$
declare
  guest_columns constant text[] := array[
    'reference', 'payload', 'content_digest', 'guest_hashes', 'consumer_phone', 'consumer_email', 'agent_phone_number',
    'agent_email', 'idempotency_key', 'envelope'
  ];
  guest_tables constant regclass[] := array['bookings', 'booking_events', 'booking_changes', 'dead_letters']::regclass[]
    || array(select inhrelid::regclass from pg_inherits where inhparent = 'booking_events'::regclass);
  part record;
begin
  for part in
    select attrelid::regclass as name, attname from pg_attribute
    where attrelid = any (guest_tables) and attname = any (guest_columns) and attstattarget is distinct from 0
  loop
    execute format('alter table only %s alter column %I set statistics 0', part.name, part.attname);
  end loop;
  for part in
    select attrelid, attnum, pg_stats.* from pg_stats
    join pg_attribute on attrelid = to_regclass(format('%I.%I', schemaname, tablename))
      and pg_attribute.attname = pg_stats.attname
    where attrelid = any (guest_tables) and pg_stats.attname = any (guest_columns)
  loop
    if current_setting('server_version_num')::integer >= 180000 then
      execute 'select pg_clear_attribute_stats($1, $2, $3, $4)'
        using part.schemaname::text, part.tablename::text, part.attname::text, part.inherited;
    else
      delete from pg_statistic where starelid = part.attrelid and staattnum = part.attnum;
    end if;
  end loop;
end $$;
revoke execute on function remove_guest_samples from public;
select remove_guest_samples();

-- The time by which something is old. Removal trusts no clock alone: `at` is the time by the caller's clock, which the
-- caller has compared with Redis'. If this server's differs by more than five minutes, nothing may be removed.
create function agreed_time(at timestamptz) returns timestamptz
language plpgsql stable
as $$
begin
  if at is null or at not between now() - interval '5 minutes' and now() + interval '5 minutes' then
    raise exception 'the clocks of PostgreSQL (%) and of the caller (%) differ by more than five minutes', now(), at
      using errcode = 'object_not_in_prerequisite_state';
  end if;
  return least(now(), at);
end $$;

-- The start of the oldest month of which a part is kept.
create function log_horizon(retention_days integer, at timestamptz) returns timestamptz
language sql stable
return date_trunc('month', at - make_interval(days => greatest(retention_days, 1)), 'UTC');

-- Records that events from before the horizon are being removed, so that workers do not apply such events any more.
create function advance_log_horizon(retention_days integer, at timestamptz) returns timestamptz
language plpgsql
set search_path from current
as $$
declare
  wanted constant timestamptz := log_horizon(retention_days, agreed_time(at));
begin
  update log_retention set horizon = wanted where horizon is null or horizon < wanted;
  return wanted;
end $$;
revoke execute on function advance_log_horizon from public;

-- The time of an event's sequence, by Redis' clock. Beside a time of PostgreSQL's clock, it keeps what was written while
-- that was wrong.
create function sequence_time(sequence bigint) returns timestamptz
language sql immutable parallel safe
return to_timestamp(sequence / 1000000.0);

-- Drops one partition that is older than the horizon. Returns its name and about how many events it had; no row: there
-- is none.
create function drop_log_partition(retention_days integer, at timestamptz) returns table (name text, events bigint)
language plpgsql security definer
set search_path from current
as $$
declare
  horizon constant timestamptz := advance_log_horizon(retention_days, at);
begin
  select relname, greatest(reltuples, 0)::bigint into name, events
  from log_partitions() join pg_class on pg_class.oid = partition
  where ends <= horizon
  limit 1;
  if name is not null then
    execute format('drop table %I', name);
    return next;
  end if;
end $$;
revoke execute on function drop_log_partition from public;

-- Deletes old events from the default partition. Events that were applied a short time ago stay, even if they are old.
--
-- Old events have old ids. The ids of the default partition may also be of times to come, so the events behind those are
-- examined too. The others need not be read.
create function delete_old_events(retention_days integer, at timestamptz, max_events integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  oldest constant timestamptz := advance_log_horizon(retention_days, at);
  ids record;
  deleted integer := 0;
  total integer := 0;
begin
  for ids in
    select '00000000-0000-0000-0000-000000000000'::uuid as first, first_event_id(oldest) as beyond
    union all
    select first_event_id(now()), 'ffffffff-ffff-ffff-ffff-ffffffffffff'
  loop
    delete from booking_events_default where id in (
      select id from booking_events_default
      where processed_at < oldest and sequence_time(sequence) < oldest and id >= ids.first and id < ids.beyond
      order by id
      limit max_events - total
    );
    get diagnostics deleted = row_count;
    total := total + deleted;
  end loop;
  return total;
end $$;
revoke execute on function delete_old_events from public;

-- Deletes old changes from the start of the feed. What a reader has still to read that was seen within the last day stays
-- up to twice as long.
create function delete_old_changes(retention_days integer, at timestamptz, max_changes integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  horizon constant timestamptz := log_horizon(retention_days, agreed_time(at));
  last_horizon constant timestamptz := log_horizon(2 * retention_days, agreed_time(at));
  needed_from constant bigint := (
    select min(last_id) + 1 from feed_readers where seen_at > now() - interval '1 day'
  );
  first_kept bigint;
  deleted integer;
begin
  select coalesce(
    min(id) filter (where changed_at >= oldest_kept or sequence_time(sequence) >= oldest_kept), max(id) + 1
  )
  into first_kept
  from (
    select id, changed_at, sequence, case when id >= needed_from then last_horizon else horizon end as oldest_kept
    from booking_changes order by id limit max_changes
  ) as oldest;
  delete from booking_changes where id < first_kept;
  get diagnostics deleted = row_count;
  -- Last, because nobody can append to the feed while the row is locked.
  if deleted > 0 then
    update feed_position set kept_from = first_kept;
  end if;
  return deleted;
end $$;
revoke execute on function delete_old_changes from public;

-- Removes rows of these readers of the feed that say nothing any more: of what their place has passed, and of readers that
-- start over. Whoever may delete rows of a table may lock all of it, so readers may call only this.
create function remove_spent_deliveries(readers text[]) returns void
language sql security definer
set search_path from current
as $$
  delete from feed_deliveries using feed_readers
  where name = reader and reader = any (readers) and (
    last_id is null
    or change_id is null and done_id <= last_id and (snapshot_after is null or booking_id <= snapshot_after)
  )
$$;
revoke execute on function remove_spent_deliveries from public;

-- Removes the content of bookings that were deleted long ago, and of their events, and what leads to it. Bookings that
-- are in use wait for the next time. A booking with more events than may be emptied at once keeps its own content, and
-- what leads to it, until a later call has emptied the last of them.
create function empty_deleted_bookings(
  retention_days integer, at timestamptz, max_bookings integer, max_events integer,
  out emptied_bookings integer, out emptied_events integer
)
language plpgsql security definer
set search_path from current
as $$
declare
  deleted_before constant timestamptz := agreed_time(at) - make_interval(days => greatest(retention_days, 1));
  key bytea;
  ids uuid[];
begin
  emptied_bookings := 0;
  emptied_events := 0;
  for key in
    select booking_key from bookings
    where deleted_at < deleted_before and content_removed_at is null
    order by deleted_at
    limit max_bookings
    for update skip locked
  loop
    ids := array(
      select id from booking_events where booking_key = key and payload is not null
      limit max_events - emptied_events
    );
    update booking_events set payload = null where id = any(ids);
    emptied_events := emptied_events + cardinality(ids);
    -- The booking may have more events.
    exit when emptied_events >= max_events;
    update bookings set payload = null, content_removed_at = now(), guest_hashes = '{}',
      default_country = null, consumer_hash = null, consumer_phone = null, consumer_phone_is_assumed = null,
      consumer_email = null, consumer_language = null, consumer_nationality = null, consumer_currency = null,
      consumer_trip_is_international = null, consumer_trip_is_regional = null, consumer_trip_is_local = null,
      consumer_trip_arrival_date = null, consumer_trip_arrival_at = null, consumer_trip_return_date = null,
      consumer_trip_return_at = null, consumer_trip_departure_country_name = null,
      consumer_trip_departure_country_code = null, consumer_trip_departure_airport_code = null,
      consumer_trip_destination_country_name = null, consumer_trip_destination_country_code = null,
      consumer_trip_destination_airport_code = null, agent_timezone = null, agent_phone_number = null,
      agent_phone_number_is_assumed = null, agent_email = null
    where booking_key = key;
    emptied_bookings := emptied_bookings + 1;
  end loop;
end $$;
revoke execute on function empty_deleted_bookings from public;

-- Deletes dead letters that were resolved long ago, and open ones whose events are older than the log: to apply them
-- has become impossible.
create function delete_old_dead_letters(
  retention_days integer, log_retention_days integer, at timestamptz, max_letters integer,
  out resolved integer, out open integer
)
language plpgsql security definer
set search_path from current
as $$
declare
  resolved_before constant timestamptz := agreed_time(at) - make_interval(days => retention_days);
  horizon constant timestamptz := log_horizon(log_retention_days, agreed_time(at));
begin
  with deleted as (
    delete from dead_letters where event_id in (
      select event_id from dead_letters
      where (retention_days > 0 and resolved_at < resolved_before)
        or (log_retention_days > 0 and resolved_at is null and failed_at < horizon
          and coalesce(sequence_time(sequence) < horizon, true))
      limit max_letters
    )
    returning resolved_at
  )
  select count(resolved_at)::integer, count(*) filter (where resolved_at is null)::integer into resolved, open
  from deleted;
end $$;
revoke execute on function delete_old_dead_letters from public;

-- Deletes what operators did longer ago than the log is kept.
create function delete_old_operator_actions(retention_days integer, at timestamptz, max_actions integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  horizon constant timestamptz := log_horizon(retention_days, agreed_time(at));
  deleted integer;
begin
  delete from operator_actions where id in (
    select id from operator_actions where began_at < horizon order by began_at limit max_actions
  );
  get diagnostics deleted = row_count;
  return deleted;
end $$;
revoke execute on function delete_old_operator_actions from public;

-- Deletes the bookings of test partners whose newest event was received more than seven days ago, and all events, changes
-- and dead letters that are so old, at most so many of each. Later events of a booking are folded on. In the schema of
-- real bookings, it refuses.
create function delete_test_data(at timestamptz, max_rows integer) returns table (name text, deleted integer)
language plpgsql security definer
set search_path from current
as $$
declare
  oldest constant timestamptz := agreed_time(at) - interval '7 days';
begin
  if current_schema() not like '%\_test\_partners' then
    raise exception 'the schema % has real bookings', current_schema() using errcode = 'object_not_in_prerequisite_state';
  end if;
  -- Workers do not apply such events any more.
  update log_retention set horizon = oldest where horizon is null or horizon < oldest;
  name := 'bookings';
  delete from bookings where booking_key = any (array(
    select booking_key from bookings where last_sequence < (extract(epoch from oldest) * 1000000)::bigint
    order by last_sequence limit max_rows
    for update skip locked
  ));
  get diagnostics deleted = row_count;
  return next;
  name := 'booking_events';
  -- One whose id is of a time to come, from a wrong clock, goes by when it was applied.
  delete from booking_events where id = any (array(
    (select id from booking_events where id < first_event_id(oldest) order by id limit max_rows)
    union all
    (select id from booking_events where id > first_event_id(now()) and processed_at < oldest order by id limit max_rows)
  ));
  get diagnostics deleted = row_count;
  return next;
  name := 'booking_changes';
  delete from booking_changes where id < (
    select coalesce(min(id) filter (where changed_at >= oldest), max(id) + 1)
    from (select id, changed_at from booking_changes order by id limit max_rows) as first_ones
  );
  get diagnostics deleted = row_count;
  return next;
  name := 'dead_letters';
  delete from dead_letters where event_id in (
    select event_id from dead_letters where least(failed_at, sequence_time(sequence)) < oldest limit max_rows
  );
  get diagnostics deleted = row_count;
  return next;
end $$;
revoke execute on function delete_test_data from public;

-- Of the bookings of test partners, those that are to be deleted.
do $$
begin
  if current_schema() like '%\_test\_partners' then
    create index bookings_by_last_sequence on bookings (last_sequence);
  end if;
end $$;

-- Events of the first weeks have their partitions from the start.
select create_log_partitions(2);

-- The log becomes a table with one partition for each month, so that old events are dropped and not deleted row by row.
-- An empty log is partitioned here. One that has events is partitioned by maintenance, step by step, while workers use
-- it. Functions do this, because the worker's role may not change tables. They run with the rights of the owner.

-- Up Migration

-- Content is removed before the rows are.
alter table booking_events
  alter column payload drop not null,
  alter column content_digest drop not null,
  drop constraint booking_events_outcome_check,
  -- Not valid: the rows need not be read now. Maintenance validates it.
  add constraint booking_events_outcome_check check (
    outcome in ('created', 'updated', 'deleted', 'recreated', 'unchanged', 'duplicate', 'superseded', 'expired')
  ) not valid;

alter table bookings add column content_removed_at timestamptz;

-- Building the index blocks writers. On a large table, maintenance builds it without that.
do $$
begin
  if (select count(*) from (select from bookings limit 100001)) <= 100000 then
    create index bookings_to_empty on bookings (deleted_at) where deleted_at is not null and content_removed_at is null;
  end if;
end $$;

alter table feed_position add column kept_from bigint not null default 1;

create table log_retention (
  is_only_row boolean primary key default true check (is_only_row),
  horizon timestamptz
);
insert into log_retention default values;

comment on column booking_events.payload is
  'What the partner sent. Null: it was removed, since the booking was deleted or the event was expired.';
comment on column booking_events.content_digest is
  'The SHA-256 of the payload in its canonical form. Null: the event was expired.';
comment on column booking_events.outcome is
  'What the event did: created, updated, deleted or recreated the booking; unchanged; duplicate: it repeats an earlier one; superseded: it was applied after a later one, which decided the state; expired: it was older than the log, and not applied.';
comment on column bookings.payload is
  'What the booking holds, as the partner sent it; of a deleted booking, what it held. Null: only deletes have been received, or the content was removed.';
comment on column bookings.content_removed_at is
  'When the content of a deleted booking and of its events was removed. Null: it was not.';
comment on column feed_position.kept_from is
  'Changes before this id have been removed, because they were too old.';
comment on table log_retention is 'One row: how much of the log has been removed.';
comment on column log_retention.is_only_row is 'Always true, and the primary key: the table has one row.';
comment on column log_retention.horizon is
  'Events that were received before this time have been or are being removed. Null: all events are kept.';

-- The smallest UUIDv7 (RFC 9562) of that time: it begins with the milliseconds since 1970.
create function first_event_id(at timestamptz) returns uuid
language sql immutable parallel safe
return (lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- The start of the oldest month of which a part is kept.
create function log_horizon(retention_days integer) returns timestamptz
language sql stable
return date_trunc('month', now() - make_interval(days => greatest(retention_days, 1)), 'UTC');

-- The functions below see only this schema, and objects of a session last: they run with the rights of the owner.
select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- An event that sent this content of the booking. A function is planned only when it is called, and rarely is.
create function find_content_event(key bytea, digest bytea) returns uuid
language plpgsql stable
set search_path from current
as $$
begin
  return (
    select id from booking_events where booking_key = key and kind <> 'delete' and content_digest = digest limit 1
  );
end $$;

-- The partitions of the log, without the default one. A name says the range, so no bound is parsed:
-- booking_events_2026_11 is a month, booking_events_before_2027_01 all that was there before the log was partitioned.
create function log_partitions() returns table (partition regclass, starts timestamptz, ends timestamptz)
language sql stable
set search_path from current
as $$
  select relid, case when not is_first then month at time zone 'UTC' end,
    case when is_first then month else month + interval '1 month' end at time zone 'UTC'
  from (
    select pg_class.oid::regclass as relid, relname ~ '_before_' as is_first,
      to_date(right(relname, 7), 'YYYY_MM')::timestamp as month
    from pg_inherits join pg_class on pg_class.oid = inhrelid
    where inhparent = to_regclass('booking_events') and relname ~ '^booking_events_(before_)?\d{4}_\d\d$'
  ) as named
  order by month
$$;

-- Gives the columns of a new table the statistics targets of the log's. "like … including all" leaves them out. A target
-- of 0 keeps samples of guests' data out of PostgreSQL's statistics.
create function keep_statistics_targets(name text, source text default 'booking_events') returns void
language plpgsql
set search_path from current
as $$
declare
  kept record;
begin
  for kept in
    select attname, attstattarget from pg_attribute
    where attrelid = to_regclass(source) and attnum > 0 and not attisdropped and attstattarget >= 0
  loop
    execute format('alter table %I alter column %I set statistics %s', name, kept.attname, kept.attstattarget);
  end loop;
end $$;

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
  if (select relkind from pg_class where oid = 'booking_events'::regclass) <> 'p' then
    return;
  end if;
  for ahead in 0 .. least(months_ahead, 12) loop
    month := (this_month + make_interval(months => ahead)) at time zone 'UTC';
    month_end := (this_month + make_interval(months => ahead + 1)) at time zone 'UTC';
    continue when exists (
      select from log_partitions() where ends >= month_end and coalesce(starts <= month, true)
    );
    select count(*) into odd from (
      select from booking_events_default
      where id >= first_event_id(month) and id < first_event_id(month_end)
      limit max_moved + 1
    ) as here;
    continue when odd > max_moved;
    -- "create table … partition of" would lock the whole log.
    name := 'booking_events_' || to_char(month at time zone 'UTC', 'YYYY_MM');
    execute format('create table %I (like booking_events including all)', name);
    perform keep_statistics_targets(name);
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
    return next name;
  end loop;
end $$;

-- What keeps the log from being replaced by a table with partitions: it would stay with the old table.
create function log_dependents() returns text
language sql stable
set search_path from current
as $$
  select string_agg(distinct pg_describe_object(classid, objid, 0), ', ')
  from pg_depend left join pg_trigger on classid = 'pg_trigger'::regclass and pg_trigger.oid = objid
  where refclassid = 'pg_class'::regclass and refobjid = 'booking_events'::regclass and deptype in ('n', 'a')
    and (classid in ('pg_rewrite'::regclass, 'pg_proc'::regclass, 'pg_policy'::regclass, 'pg_publication_rel'::regclass)
      or pg_trigger.oid is not null)
$$;

-- The first step. A constraint says that all ids are below the first partition's end, two months ahead. Few events have
-- ids of a later time, from a wrong clock. They move to what will be the default partition. It inherits from the log
-- until then, so that queries of the log see its rows.
create function prepare_log_partition() returns void
language plpgsql
set search_path from current
as $$
declare
  max_moved constant integer := 10000;
  cut constant timestamp := date_trunc('month', now() at time zone 'UTC') + interval '2 months';
  cut_id constant uuid := first_event_id(cut at time zone 'UTC');
begin
  lock table booking_events in access exclusive mode;
  if (select count(*) from (select from booking_events where id >= cut_id limit max_moved + 1) as odd) > max_moved then
    raise exception 'More than % events have ids of the future, so the log stays one table. Old events are deleted one by one.',
      max_moved using errcode = 'object_not_in_prerequisite_state';
  end if;
  if to_regclass('booking_events_default') is null then
    create table booking_events_default (like booking_events including all);
    perform keep_statistics_targets('booking_events_default');
    alter table booking_events_default inherit booking_events;
  end if;
  with moved as (delete from only booking_events where id >= cut_id returning *)
  insert into booking_events_default select * from moved;
  execute format(
    'alter table booking_events add constraint ids_before_%s check (id < %L) no inherit not valid',
    to_char(cut, 'YYYY_MM'), cut_id
  );
end $$;

-- The last step. Tables keep the names of their columns and constraints, which must be equal for attaching.
create function attach_log_partition(cut timestamptz) returns void
language plpgsql
set search_path from current
as $$
declare
  log constant regclass := 'booking_events';
  is_empty constant boolean := not exists (select from booking_events);
  first_name constant text := 'booking_events_before_' || to_char(cut at time zone 'UTC', 'YYYY_MM');
  about constant text := obj_description(log, 'pg_class');
  statements constant text[] :=
    array(select pg_get_indexdef(indexrelid) from pg_index where indrelid = log and not indisprimary)
    || array(
      select format('grant %s on booking_events to %s', privilege_type, coalesce(nullif(grantee, 0)::regrole::text, 'public'))
      from pg_class, aclexplode(relacl) where pg_class.oid = log and grantee <> relowner
    )
    || array(
      select format('grant %s (%I) on booking_events to %s', privilege_type, attname,
        coalesce(nullif(grantee, 0)::regrole::text, 'public'))
      from pg_attribute, aclexplode(attacl) where attrelid = log
    );
  statement text;
begin
  lock table booking_events in access exclusive mode;
  for statement in
    select format('alter index %s rename to %I', indexrelid::regclass, replace(relname, 'booking_events', first_name))
    from pg_index join pg_class on pg_class.oid = indexrelid where indrelid = log
  loop
    execute statement;
  end loop;
  if to_regclass('booking_events_default') is null then
    create table booking_events_default (like booking_events including all);
    perform keep_statistics_targets('booking_events_default');
  else
    alter table booking_events_default no inherit booking_events;
  end if;
  execute format('alter table booking_events rename to %I', first_name);
  create table booking_events (like booking_events_default including all excluding indexes) partition by range (id);
  perform keep_statistics_targets('booking_events', first_name);
  execute format('comment on table booking_events is %L', about);
  alter table booking_events add primary key (id);
  foreach statement in array statements loop
    execute statement;
  end loop;
  alter table booking_events attach partition booking_events_default default;
  if is_empty then
    execute format('drop table %I', first_name);
  else
    execute format(
      'alter table booking_events attach partition %I for values from (minvalue) to (%L)', first_name, first_event_id(cut)
    );
    execute format('alter table %I drop constraint ids_before_%s', first_name, to_char(cut at time zone 'UTC', 'YYYY_MM'));
  end if;
end $$;

-- Takes the next step towards a log with partitions, and returns its name; null: nothing is left to do. Each step is
-- called in a transaction of its own.
--
-- The table with the events becomes the first partition. It is attached, not copied. The constraint that its ids are
-- below the partition's end is added without a scan, and validated while others read and write. So attaching needs no
-- scan, and locks the table only for a moment.
create function partition_log() returns text
language plpgsql security definer
set search_path from current
as $$
declare
  log constant regclass := 'booking_events';
  bound constant text := (select conname from pg_constraint where conrelid = log and conname ~ '^ids_before_\d{4}_\d\d$');
  cut constant timestamptz := to_date(right(bound, 7), 'YYYY_MM')::timestamp at time zone 'UTC';
  unproven text;
begin
  if (select relkind from pg_class where oid = log) = 'p' then
    return null;
  end if;
  if log_dependents() <> '' then
    raise exception 'These depend on the table booking_events: %. Drop them, and create them again when the log has partitions.',
      log_dependents() using errcode = 'object_not_in_prerequisite_state';
  end if;
  if not exists (select from booking_events) then
    perform attach_log_partition(now());
    return 'attached';
  end if;
  if bound is null then
    perform prepare_log_partition();
    return 'prepared';
  end if;
  -- The constraint must never refuse an event of today.
  if cut < now() + interval '14 days' then
    execute format('alter table booking_events drop constraint %I', bound);
    return 'postponed';
  end if;
  -- Together, so that the table is read once.
  select string_agg(format('validate constraint %I', conname), ', ') into unproven
  from pg_constraint where conrelid = log and not convalidated;
  if unproven is not null then
    execute 'alter table booking_events ' || unproven;
    return 'validated';
  end if;
  perform attach_log_partition(cut);
  return 'attached';
end $$;

-- Records that events from before the horizon are being removed, so that workers do not apply such events any more.
create function advance_log_horizon(retention_days integer) returns timestamptz
language sql
set search_path from current
as $$
  update log_retention set horizon = log_horizon(retention_days)
  where horizon is null or horizon < log_horizon(retention_days);
  select log_horizon(retention_days)
$$;

-- Drops one partition that is older than the horizon. Returns its name and about how many events it had; no row: there
-- is none.
create function drop_log_partition(retention_days integer) returns table (name text, events bigint)
language plpgsql security definer
set search_path from current
as $$
declare
  horizon constant timestamptz := advance_log_horizon(retention_days);
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

-- Deletes old events that are in no partition of one month: in the first partition, in the default one, or in a log
-- without partitions. Events that were applied a short time ago stay, even if they are old.
create function delete_old_events(retention_days integer, max_events integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  oldest constant timestamptz := advance_log_horizon(retention_days);
  target regclass;
  deleted integer := 0;
  total integer := 0;
begin
  for target in
    select oid from pg_class
    where oid in (to_regclass('booking_events'), to_regclass('booking_events_default')) and relkind = 'r'
    union all
    select partition from log_partitions() where starts is null
  loop
    execute format(
      'delete from only %1$s where id in (
         select id from only %1$s where processed_at < $1 and (id < $2 or $3) order by id limit $4
       )', target
    ) using oldest, first_event_id(oldest), target = to_regclass('booking_events_default'), max_events - total;
    get diagnostics deleted = row_count;
    total := total + deleted;
  end loop;
  return total;
end $$;

-- Deletes old changes from the start of the feed.
create function delete_old_changes(retention_days integer, max_changes integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  first_kept bigint;
  deleted integer;
begin
  select coalesce(min(id) filter (where changed_at >= log_horizon(retention_days)), max(id) + 1) into first_kept
  from (select id, changed_at from booking_changes order by id limit max_changes) as oldest;
  delete from booking_changes where id < first_kept;
  get diagnostics deleted = row_count;
  -- Last, because nobody can append to the feed while the row is locked.
  if deleted > 0 then
    update feed_position set kept_from = first_kept;
  end if;
  return deleted;
end $$;

-- Deletes dead letters that were resolved long ago, and open ones whose events are older than the log: to apply them
-- has become impossible.
create function delete_old_dead_letters(
  retention_days integer, log_retention_days integer, max_letters integer, out resolved integer, out open integer
)
language sql security definer
set search_path from current
as $$
  with deleted as (
    delete from dead_letters where event_id in (
      select event_id from dead_letters
      where (retention_days > 0 and resolved_at < now() - make_interval(days => retention_days))
        or (log_retention_days > 0 and resolved_at is null and failed_at < log_horizon(log_retention_days))
      limit max_letters
    )
    returning resolved_at
  )
  select count(resolved_at)::integer, count(*) filter (where resolved_at is null)::integer from deleted
$$;

do $$
declare
  routine regprocedure;
begin
  for routine in
    select oid from pg_proc
    where pronamespace = to_regnamespace(current_schema()) and proname in (
      'keep_statistics_targets', 'create_log_partitions', 'prepare_log_partition', 'attach_log_partition', 'partition_log', 'advance_log_horizon',
      'drop_log_partition', 'delete_old_events', 'delete_old_changes',
      'delete_old_dead_letters'
    )
  loop
    execute format('revoke execute on function %s from public', routine);
  end loop;
  if not exists (select from booking_events) then
    perform partition_log();
    perform create_log_partitions(2);
  end if;
end $$;

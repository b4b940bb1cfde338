-- Guests can be found by keyed hashes of their e-mail addresses and phone numbers, and be erased. An erased booking
-- leaves a row that only its keyed hash identifies, so that late events do not bring it back. Digests of contents are
-- keyed too: a guest's data can be guessed, and a plain digest would confirm the guess.

-- Up Migration

create table digest_key (
  is_only_row boolean primary key default true check (is_only_row),
  key bytea,
  fingerprint bytea,
  converted_to bytea
);

-- Each UUID has 122 random bits.
insert into digest_key (key, converted_to)
select sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())),
  case when exists (select from bookings) then '\x'::bytea end;

alter table bookings
  add column guest_hashes bigint[],
  add column erased_at timestamptz,
  -- A worker of an older release writes digests without a key. It may do so while a booking has only such digests.
  add constraint bookings_content_digest_check
    check (guest_hashes is null or content_digest is null or length(content_digest) = 16) not valid;

alter table booking_events
  alter column payload drop not null,
  alter column content_digest drop not null;

-- The constraint keeps the outcomes that it had. Checking all rows would block a large log for long. Maintenance does it
-- before it partitions the log.
do $$
declare
  outcomes text := (
    select string_agg(distinct quote_literal(outcome[1]), ', ')
    from pg_constraint, regexp_matches(pg_get_constraintdef(oid), '''(\w+)''', 'g') as outcome
    where conrelid = 'booking_events'::regclass and conname = 'booking_events_outcome_check'
  );
begin
  alter table booking_events drop constraint booking_events_outcome_check;
  execute format(
    'alter table booking_events add constraint booking_events_outcome_check check (outcome in (%s, ''erased'')) %s',
    outcomes, case when exists (select from booking_events) then 'not valid' else '' end
  );
end $$;

create table erasures (
  id uuid primary key default gen_random_uuid(),
  erased_at timestamptz not null default clock_timestamp(),
  erased_by text not null,
  reason text not null,
  search text not null check (search in ('email', 'phone', 'reference')),
  bookings integer not null default 0,
  events integer not null default 0,
  dead_letters integer not null default 0,
  jobs integer not null default 0
);

-- Building the index of a large table would block its writers for long. Maintenance builds it without that. Rows without
-- a hash are left out, since they would all be one entry of the index.
do $$
begin
  if pg_relation_size('bookings') <= 1073741824 then
    create index bookings_by_guest on bookings using gin (guest_hashes) where guest_hashes <> '{}';
  end if;
end $$;

-- Statistics hold samples of a column's values, and would keep those of an erased guest. No query needs those of these
-- columns. The function switches them off, for later partitions of the log too, and removes the samples that are there.
-- Before PostgreSQL 18, only a superuser can remove them. It runs with the rights of the owner, but sees only this schema.
select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

create function remove_guest_samples() returns void
language plpgsql security definer
set search_path from current
as $$
declare
  guest_columns constant text[] := array[
    'payload', 'reference', 'content_digest', 'guest_hashes', 'idempotency_key', 'envelope'
  ];
  sampled record;
begin
  for sampled in
    select attrelid, attnum, attname, relname, nspname, attstattarget is distinct from 0 as is_on,
      exists (select from pg_stats where schemaname = nspname and tablename = relname and pg_stats.attname = pg_attribute.attname)
        as has_samples
    from pg_attribute join pg_class on pg_class.oid = attrelid join pg_namespace on pg_namespace.oid = relnamespace
    where attname = any(guest_columns) and attrelid in (
      select 'bookings'::regclass union select 'booking_changes'::regclass union select 'dead_letters'::regclass
      union select 'booking_events'::regclass
      union select inhrelid::regclass from pg_inherits where inhparent = 'booking_events'::regclass
    )
  loop
    if sampled.is_on then
      execute format('alter table only %s alter column %I set statistics 0', sampled.attrelid::regclass, sampled.attname);
    end if;
    continue when not sampled.has_samples;
    if current_setting('server_version_num')::int >= 180000 then
      execute format('select pg_clear_attribute_stats(%1$L, %2$L, %3$L, false), pg_clear_attribute_stats(%1$L, %2$L, %3$L, true)',
        sampled.nspname, sampled.relname, sampled.attname);
    elsif (select rolsuper from pg_roles where rolname = current_user) then
      delete from pg_statistic where starelid = sampled.attrelid and staattnum = sampled.attnum;
    end if;
  end loop;
end $$;
revoke execute on function remove_guest_samples from public;
select remove_guest_samples();

comment on column bookings.booking_key is
  'The SHA-256 of the partner, the kind of the reference and the reference: the booking''s identity. Of an erased '
  'booking, a keyed hash of that.';
comment on column bookings.reference is
  'The partner''s reference of the booking. Of an erased booking, erased- and a part of booking_key.';
comment on column bookings.content_digest is
  'A keyed hash of the payload in its canonical form (see digest_key), of 16 bytes. A digest of 32 bytes is a plain '
  'SHA-256 from before migration 0010.';
comment on column bookings.guest_hashes is
  'Keyed hashes of each e-mail address and phone number of the consumer that an event of the booking has sent, by '
  'which a guest''s bookings are found. {-1}: they are too many, so the contents have to be searched. Null: neither '
  'they nor keyed digests have been computed yet.';
comment on column bookings.erased_at is
  'When the booking was erased. The row keeps later events of the booking from bringing it back. Null: it was not.';
comment on column booking_events.booking_key is 'The booking: see bookings.booking_key.';
comment on column booking_events.reference is
  'The partner''s reference of the booking. Of an erased booking: see bookings.reference.';
comment on column booking_events.payload is 'What the partner sent. Null: it has been removed.';
comment on column booking_events.content_digest is
  'A digest of the payload: see bookings.content_digest. Null: it has been removed with the payload.';
do $$
begin
  execute format('comment on column booking_events.outcome is %L',
    rtrim(col_description('booking_events'::regclass, (
      select attnum from pg_attribute where attrelid = 'booking_events'::regclass and attname = 'outcome'
    )), '.') || '; erased: its booking has been erased, so it was recorded without its content.');
end $$;
comment on column booking_events.idempotency_key is
  'The partner''s key of the event. Null: it was sent without one, or the booking has been erased.';
comment on column booking_changes.reference is
  'The partner''s reference of the booking. Of an erased booking, bookings.reference.';
comment on column dead_letters.reference is
  'The partner''s reference of the booking. Null: the event could not be read, or its booking has been erased.';
comment on column dead_letters.envelope is
  'The event as it was in the queue, byte for byte. Empty: its booking has been erased.';

comment on table digest_key is
  'One row: the key of content_digest, of guest_hashes and of erased bookings. Without it, none of these can be '
  'compared with anything.';
comment on column digest_key.is_only_row is 'Always true, and the primary key: the table has one row.';
comment on column digest_key.key is 'The key, made by the migration. Null: the operator keeps a key in DIGEST_KEY.';
comment on column digest_key.fingerprint is
  'A hash of the key in use, by which a process notices that it has another one. Null: no process has used one yet.';
comment on column digest_key.converted_to is
  'Bookings up to this booking_key have keyed digests and guest_hashes. Null: all do that were there at the time.';

comment on table erasures is 'One row for each time that an operator erased a guest. It holds nothing of the guest.';
comment on column erasures.id is 'A random id.';
comment on column erasures.erased_at is 'When the erasure began.';
comment on column erasures.erased_by is 'The operator.';
comment on column erasures.reason is 'Why, in the operator''s words.';
comment on column erasures.search is 'By what the guest was found: email, phone or reference.';
comment on column erasures.bookings is 'How many bookings were erased.';
comment on column erasures.events is 'How many events in the log were emptied.';
comment on column erasures.dead_letters is 'How many dead letters were emptied.';
comment on column erasures.jobs is 'How many events were taken out of the queue.';

-- The tables: bookings, the log of events that they are folded from, the feed of their changes, dead letters, and what
-- the service has to remember besides. What each table and column holds is also said in the database, for those who
-- query it.

create table bookings (
  -- A digest, since a reference may be too long for an index row.
  booking_key bytea primary key,
  booking_id uuid not null default gen_random_uuid(),
  partner text collate "C" not null,
  reference_kind text collate "C" not null check (reference_kind in ('trip', 'consumer')),
  reference text collate "C" not null,
  state text collate "C" not null check (state in ('active', 'deleted')),
  event_id uuid not null,
  sequence bigint not null,
  last_sequence bigint not null,
  revision integer not null,
  feed_event_id uuid,
  payload jsonb,
  content_digest bytea check (length(content_digest) = 16),
  content_event_id uuid,
  newest_keyless_sequence bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  content_removed_at timestamptz,
  erased_at timestamptz,
  guest_hashes bigint[] not null default '{}',
  -- What follows from the payload. Unlike indexes on the payload, these columns let an update that leaves them as they
  -- are touch no index.
  default_country text collate "C",
  -- A hash, since a reference may be too long for an index row.
  consumer_hash bigint,
  consumer_phone text collate "C",
  consumer_phone_is_assumed boolean,
  consumer_email text collate "C",
  consumer_language text collate "C",
  consumer_nationality text collate "C",
  consumer_currency text collate "C",
  consumer_trip_is_international boolean,
  consumer_trip_is_regional boolean,
  consumer_trip_is_local boolean,
  consumer_trip_arrival_date date,
  consumer_trip_arrival_at timestamptz,
  consumer_trip_return_date date,
  consumer_trip_return_at timestamptz,
  consumer_trip_departure_country_name text collate "C",
  consumer_trip_departure_country_code text collate "C",
  consumer_trip_departure_airport_code text collate "C",
  consumer_trip_destination_country_name text collate "C",
  consumer_trip_destination_country_code text collate "C",
  consumer_trip_destination_airport_code text collate "C",
  agent_timezone text collate "C",
  agent_phone_number text collate "C",
  agent_phone_number_is_assumed boolean,
  agent_email text collate "C"
)
-- A page keeps room for a new version of a row. An update then touches no index, unless it changes what is indexed.
with (fillfactor = 75);

-- Partners compare their bookings with ours in the order of creation, in which new ones are added to the end of the
-- partner's part of the index.
create index bookings_by_partner on bookings (partner, created_at, booking_key);

-- What people look bookings up by.
create index bookings_by_reference on bookings using hash (reference);
create index bookings_by_arrival on bookings (
  consumer_trip_arrival_date, consumer_trip_destination_country_code, consumer_trip_destination_airport_code
) where consumer_trip_arrival_date is not null;
create index bookings_by_return on bookings (consumer_trip_return_date) where consumer_trip_return_date is not null;

-- "Which bookings has this guest?" Rows without a hash are left out, since they would all be one entry of the index.
create index bookings_by_guest on bookings using gin (guest_hashes) where guest_hashes <> '{}';

-- "Has this consumer bookings with trip references?"
create index bookings_by_consumer on bookings (consumer_hash) where consumer_hash is not null;

-- Ids are random, and programs that keep copies of bookings know them by nothing else.
create unique index bookings_by_id on bookings (booking_id);

-- "Has this booking been erased?" The index stays small, however many bookings there are.
create index bookings_erased on bookings (booking_key) where erased_at is not null;

-- Deleted bookings whose content is to be removed.
create index bookings_to_empty on bookings (deleted_at) where deleted_at is not null and content_removed_at is null;

comment on table bookings is
  'One row for each booking: its state now, which is the fold of its events in sequence order. A deleted booking stays, so that a late event cannot bring it back.';
comment on column bookings.booking_key is
  'The SHA-256 of the partner, the kind of the reference and the reference: the booking''s identity. Of an erased booking, a keyed hash of that.';
comment on column bookings.booking_id is
  'A random id of the booking, which it keeps for good, over its erasure too. Whoever keeps a copy of a booking finds it again by this.';
comment on column bookings.partner is 'The id of the partner that sends the booking.';
comment on column bookings.reference_kind is
  'Which reference it is: the trip''s, or the consumer''s of a booking that was sent without a trip reference. Each kind is a namespace of its own.';
comment on column bookings.reference is
  'The partner''s reference of the booking. Of an erased booking, erased- and a part of booking_key.';
comment on column bookings.state is 'active or deleted.';
comment on column bookings.event_id is 'The event that decided the state.';
comment on column bookings.sequence is 'The sequence of event_id: its place in the order of receipt.';
comment on column bookings.last_sequence is
  'The sequence of the newest event that was folded in, whether it changed anything or not.';
comment on column bookings.revision is 'How many changes the booking has had: the revision of its newest change.';
comment on column bookings.feed_event_id is
  'The event that the booking''s last change in the feed named. Null: it is event_id.';
comment on column bookings.payload is
  'What the booking holds, as the partner sent it; of a deleted booking, what it held. Null: only deletes have been received, or the content was removed.';
comment on column bookings.content_digest is
  'A keyed hash of the payload in its canonical form (see digest_key), of 16 bytes. Null: only deletes have been received, or the booking was erased.';
comment on column bookings.content_event_id is
  'An event that sent the payload. Null: only deletes have been received, or the booking was erased.';
comment on column bookings.newest_keyless_sequence is
  'The sequence of the newest event without an idempotency key that sent the payload: what a late retry is compared with.';
comment on column bookings.created_at is 'When the first event of the booking was received.';
comment on column bookings.updated_at is 'When the event was received that decided the state.';
comment on column bookings.deleted_at is 'When the event was received that deleted the booking. Null: it is active.';
comment on column bookings.content_removed_at is
  'When the content of a deleted booking and of its events was removed. Null: it was not.';
comment on column bookings.erased_at is
  'When the booking was erased. The row keeps later events of the booking from bringing it back. Null: it was not.';
comment on column bookings.guest_hashes is
  'Keyed hashes of each e-mail address, and of the end of each phone number, of the consumer that an event of the booking has sent, by which a guest''s bookings are found. {-1}: they are too many, so the contents have to be searched.';
comment on column bookings.default_country is
  'booking_events.default_country of the event that sent the payload. This column and the following ones follow from the payload, and are null if it lacks the field, or the value cannot be read. If a rule has changed, ops bookings renormalise corrects them.';
comment on column bookings.consumer_hash is
  'A hash of the consumer''s reference of a booking with a trip reference, by which a consumer''s trips are found.';
comment on column bookings.consumer_phone is
  'consumerPhone in E.164, such as +442071838750, without an extension; of several numbers, the first.';
comment on column bookings.consumer_phone_is_assumed is
  'Whether consumerPhone was sent without a country code, so that its country was assumed: that of the nationality, or else default_country. Null: there is no number.';
comment on column bookings.consumer_email is
  'The address in consumerEmail, without a name or white space around it, and with its domain in lower case. booking_details has it as consumer_email_normalised, and calls what was sent consumer_email.';
comment on column bookings.consumer_language is
  'consumerLanguage as a language tag in its canonical form, such as en or zh-Hant-TW.';
comment on column bookings.consumer_nationality is
  'consumerNationality as an ISO 3166-1 alpha-2 code, such as GB. booking_details has it as consumer_nationality_normalised, and calls what was sent consumer_nationality.';
comment on column bookings.consumer_currency is
  'consumerCurrency as an ISO 4217 code, such as EUR. booking_details has it as consumer_currency_normalised, and calls what was sent consumer_currency.';
comment on column bookings.consumer_trip_is_international is
  'consumerTripIsInternational: true for true, t, yes, y and 1; false for false, f, no, n and 0.';
comment on column bookings.consumer_trip_is_regional is
  'consumerTripIsRegional: true for true, t, yes, y and 1; false for false, f, no, n and 0.';
comment on column bookings.consumer_trip_is_local is
  'consumerTripIsLocal: true for true, t, yes, y and 1; false for false, f, no, n and 0.';
comment on column bookings.consumer_trip_arrival_date is
  'consumerTripArrivalDate: the calendar day as the partner wrote it.';
comment on column bookings.consumer_trip_arrival_at is
  'consumerTripArrivalDate: the moment. Null if a day was sent, or a time without its zone.';
comment on column bookings.consumer_trip_return_date is
  'consumerTripReturnDate: the calendar day as the partner wrote it.';
comment on column bookings.consumer_trip_return_at is
  'consumerTripReturnDate: the moment. Null if a day was sent, or a time without its zone.';
comment on column bookings.consumer_trip_departure_country_name is
  'consumerTripDepartureCountryName as sent, without white space around it. Null if it has more than 100 characters. booking_details has it as consumer_trip_departure_country_name_normalised, and calls what was sent consumer_trip_departure_country_name.';
comment on column bookings.consumer_trip_departure_country_code is
  'consumerTripDepartureCountryName as an ISO 3166-1 alpha-2 code, such as GB.';
comment on column bookings.consumer_trip_departure_airport_code is
  'consumerTripDepartureAirportCode in capitals. Null if it has not the shape of an IATA code (three letters). booking_details has it as consumer_trip_departure_airport_code_normalised, and calls what was sent consumer_trip_departure_airport_code.';
comment on column bookings.consumer_trip_destination_country_name is
  'consumerTripDestinationCountryName as sent, without white space around it. Null if it has more than 100 characters. booking_details has it as consumer_trip_destination_country_name_normalised, and calls what was sent consumer_trip_destination_country_name.';
comment on column bookings.consumer_trip_destination_country_code is
  'consumerTripDestinationCountryName as an ISO 3166-1 alpha-2 code, such as ES.';
comment on column bookings.consumer_trip_destination_airport_code is
  'consumerTripDestinationAirportCode in capitals. Null if it has not the shape of an IATA code (three letters). booking_details has it as consumer_trip_destination_airport_code_normalised, and calls what was sent consumer_trip_destination_airport_code.';
comment on column bookings.agent_timezone is
  'agentTimezone as an IANA name, such as Europe/London. booking_details has it as agent_timezone_normalised, and calls what was sent agent_timezone.';
comment on column bookings.agent_phone_number is
  'agentPhoneNumber in E.164, such as +442071838750, without an extension; of several numbers, the first.';
comment on column bookings.agent_phone_number_is_assumed is
  'Whether agentPhoneNumber was sent without a country code, so that its country was assumed: default_country. Null: there is no number.';
comment on column bookings.agent_email is
  'The address in agentEmail, without a name or white space around it, and with its domain in lower case. booking_details has it as agent_email_normalised, and calls what was sent agent_email.';

-- One partition for each month, so that old events are dropped and not deleted row by row. An id begins with the time of
-- receipt, so it decides the partition.
create table booking_events (
  id uuid primary key,
  partner text collate "C" not null,
  kind text collate "C" not null check (kind in ('create', 'update', 'delete')),
  reference_kind text collate "C" not null check (reference_kind in ('trip', 'consumer')),
  reference text collate "C" not null,
  booking_key bytea not null,
  sequence bigint not null,
  idempotency_key text collate "C",
  secret_id text collate "C",
  default_country text collate "C",
  payload jsonb,
  content_digest bytea,
  outcome text collate "C" not null check (
    outcome in (
      'created', 'updated', 'deleted', 'recreated', 'unchanged', 'duplicate', 'superseded', 'expired', 'erased'
    )
  ),
  duplicate_of uuid,
  warnings text[] collate "C" not null default '{}',
  -- With each event, the booking's state after it: a late event is folded in from its predecessor on, and the fold ends
  -- where it comes to the state that is stored. So its cost depends on how late it is, and not on how many events the
  -- booking has.
  state_after text collate "C" check (state_after in ('active', 'deleted')),
  decided_by uuid,
  content_from uuid,
  newest_keyless_sequence bigint,
  received_at timestamptz not null,
  processed_at timestamptz not null default now()
) partition by range (id);

-- Has the events of a month without a partition, and those whose ids are of another time: from a wrong clock, or of a
-- partner's old bookings that were imported.
create table booking_events_default partition of booking_events default;

-- A booking's history in the order of its fold. What takes no part in it stands apart, so that a million repetitions of
-- one event are not in the way. Events of one import have one sequence.
create index booking_events_by_booking on booking_events (booking_key, (duplicate_of is null), sequence, id);

-- "Does this create repeat an earlier one?"
create index booking_events_creates on booking_events (booking_key, content_digest, sequence)
  where kind = 'create' and idempotency_key is null;

-- The earliest event of a booking with an idempotency key.
create index booking_events_first_with_key on booking_events (booking_key, idempotency_key)
  where idempotency_key is not null and duplicate_of is null and 'key-reused' <> all (warnings);

-- Those that use it again, with another kind or content.
create index booking_events_reusing_key on booking_events (booking_key, idempotency_key, content_digest)
  where idempotency_key is not null and duplicate_of is null and 'key-reused' = any (warnings);

-- The newest events of a partner that sends little.
create index booking_events_by_partner on booking_events (partner, id);

-- Events of which their sender should know something. They are few.
create index booking_events_noticed on booking_events (partner, id)
  where warnings && '{booking-unknown,key-reused,reference-kind,replaced}';

-- Events with a rare outcome. Those with an outcome that nearly every event has are found soon enough without an index.
create index booking_events_by_outcome on booking_events (outcome, id) where outcome not in ('created', 'updated');

comment on table booking_events is
  'The log: every event that was accepted and processed, once. Its id is its identity; sequence is its place in the order of receipt.';
comment on column booking_events.id is
  'The id that the partner got as a receipt: a UUIDv7, which begins with the time of receipt.';
comment on column booking_events.partner is 'The id of the partner that sent the event.';
comment on column booking_events.kind is 'create, update or delete.';
comment on column booking_events.reference_kind is 'Whether it is the reference of a trip or of a consumer.';
comment on column booking_events.reference is
  'The partner''s reference of the booking. Of an erased booking: see bookings.reference.';
comment on column booking_events.booking_key is 'The booking: see bookings.booking_key.';
comment on column booking_events.sequence is
  'The place in the order of receipt at all ingests: microseconds since 1970 by Redis'' clock, or one more than the event before.';
comment on column booking_events.idempotency_key is
  'The partner''s key of the event. Null: it was sent without one, or the booking has been erased.';
comment on column booking_events.secret_id is
  'The id, in the partners file, of the secret by which the event came. Null: it was imported.';
comment on column booking_events.default_country is
  'The partner''s country when the event was received (ISO 3166-1 alpha-2), by which phone numbers without a country code are read. Null: it had none.';
comment on column booking_events.payload is 'What the partner sent. Null: it has been removed.';
comment on column booking_events.content_digest is
  'A digest of the payload: see bookings.content_digest. Null: it has been removed with the payload.';
comment on column booking_events.outcome is
  'What the event did: created, updated, deleted or recreated the booking; unchanged; duplicate: it repeats an earlier one; superseded: it was applied after a later one, which decided the state; expired: it was older than the log, and not applied; erased: its booking has been erased, so it was recorded without its content.';
comment on column booking_events.duplicate_of is
  'An event of the booking with the same idempotency key, kind and content, which was received before this one. This one takes no part in the fold.';
comment on column booking_events.warnings is 'Codes of what the sender should know: those of the answer to the event, such as similar-name, and those that showed when it was applied, such as booking-unknown, replaced, key-reused and reference-kind.';
comment on column booking_events.state_after is
  'The booking''s state after this event. Null: the event takes no part in the fold.';
comment on column booking_events.decided_by is 'The event that decided state_after. Null: this one.';
comment on column booking_events.content_from is
  'An event whose payload is the booking''s content after this event. Null: this one or, of a delete, none.';
comment on column booking_events.newest_keyless_sequence is 'bookings.newest_keyless_sequence after this event.';
comment on column booking_events.received_at is 'When ingest received the event, by its own clock.';
comment on column booking_events.processed_at is 'When the transaction that applied the event began.';

create table booking_changes (
  id bigint primary key,
  booking_id uuid not null,
  partner text collate "C" not null,
  reference_kind text collate "C" not null check (reference_kind in ('trip', 'consumer')),
  reference text collate "C",
  revision integer not null,
  change text collate "C" not null check (change in ('created', 'updated', 'deleted', 'recreated', 'erased')),
  event_id uuid not null,
  previous_event_id uuid,
  sequence bigint not null,
  changed_at timestamptz not null default now()
);

-- A booking's newest change, and all that an erasure has to empty.
create index booking_changes_by_booking on booking_changes (booking_id, id);

comment on table booking_changes is
  'The feed: one row for each change of a booking, written in the transaction that changed the booking. Ids are visible in order and without gaps. Whoever has read id n has missed nothing if the next id is n + 1. Each transaction that appends notifies a channel of its last id: booking_changes, or in another schema than public, the channel with the schema''s name.';
comment on column booking_changes.id is
  'The place in the feed. A later change of a booking overrides an earlier one, even if its sequence is lower: it corrects the booking after a late event.';
comment on column booking_changes.booking_id is
  'bookings.booking_id: what readers find their copy of the booking by, whatever they have read before.';
comment on column booking_changes.partner is 'The id of the partner that sends the booking.';
comment on column booking_changes.reference_kind is 'Whether it is the reference of a trip or of a consumer.';
comment on column booking_changes.reference is
  'The partner''s reference of the booking. Null: the booking has been erased, by this change or a later one.';
comment on column booking_changes.revision is 'Numbers the changes of one booking: 1, 2, 3 and so on.';
comment on column booking_changes.change is
  'What happened to the booking: created, updated, deleted, recreated or erased (forgotten on request).';
comment on column booking_changes.event_id is
  'The event that decided the new state. Unless the booking is deleted or erased, its payload in booking_events is the new content. If the log no longer has that, bookings.payload is what an active booking holds now.';
comment on column booking_changes.previous_event_id is
  'The event of the booking''s change before. Unless the booking was deleted, its payload is the old content. Null: there was no booking.';
comment on column booking_changes.sequence is 'The sequence of event_id: its place in the order of receipt.';
comment on column booking_changes.changed_at is 'When the transaction that changed the booking began.';

-- Its lock lets one transaction append to the feed at a time. An update that is rolled back gives its ids back, as a
-- sequence would not.
create table feed_position (
  is_only_row boolean primary key default true check (is_only_row),
  last_id bigint not null,
  kept_from bigint not null default 1
);
insert into feed_position (last_id) values (0);

comment on table feed_position is 'One row: how far booking_changes goes.';
comment on column feed_position.is_only_row is 'Always true, and the primary key: the table has one row.';
comment on column feed_position.last_id is 'The id of the newest change.';
comment on column feed_position.kept_from is 'Changes before this id have been removed, because they were too old.';

create table feed_readers (
  name text collate "C" primary key check (name ~ '^[A-Za-z0-9._-]{1,100}$'),
  -- Its type has no reference to the role, so a dump can be restored where the role is missing.
  owner name not null default current_user,
  last_id bigint,
  snapshot_after uuid,
  moved_at timestamptz not null default now(),
  seen_at timestamptz not null default now(),
  active_id uuid,
  failing_since timestamptz,
  breaker_opened_at timestamptz,
  probe_at timestamptz
);

-- Everybody may see how far a reader is. Only its own role may move it; the tables' owner may, too.
alter table feed_readers enable row level security;
create policy look on feed_readers for select using (true);
create policy begin on feed_readers for insert with check (owner = current_user);
create policy move on feed_readers for update using (owner = current_user);

comment on table feed_readers is 'The programs that read the feed by @booking-events/feed, and how far each has come.';
comment on column feed_readers.name is 'The name under which the program reads.';
comment on column feed_readers.owner is 'The role that read first under this name. No other role can move the reader.';
comment on column feed_readers.last_id is
  'All changes up to this id have been dealt with; what is still to be done of them has a row in feed_deliveries. Null: the reader has been reset, and starts over.';
comment on column feed_readers.snapshot_after is
  'While all bookings are handed over, in the order of their ids: the last one that has been dealt with. last_id is then the position of the feed at which that began. Null: no snapshot is under way.';
comment on column feed_readers.moved_at is 'When last_id was set last.';
comment on column feed_readers.seen_at is 'When the program was last known to run: it says so at least every 30 seconds, and every 3 while it delivers.';
comment on column feed_readers.active_id is
  'The process that delivers. Whatever it writes counts only while its id is here. Another process takes its place when it has seen no change of this and seen_at for 10 seconds. Null: any process may begin. Whoever moves last_id or changes feed_deliveries by hand sets it to null, so that the process reads them again.';
comment on column feed_readers.failing_since is 'Since when every attempt has failed. Null: the last one has not.';
comment on column feed_readers.breaker_opened_at is
  'Since when nothing is delivered but one booking at a time, to see whether the consumer works again. Null: it works.';
comment on column feed_readers.probe_at is 'When the next of these attempts is due.';

-- Exceptions only: a change that is delivered in its turn has no row here.
create table feed_deliveries (
  reader text collate "C" not null references feed_readers on delete cascade,
  booking_id uuid not null,
  done_id bigint,
  change_id bigint,
  since_id bigint,
  attempts integer not null default 0,
  first_failed_at timestamptz,
  last_failed_at timestamptz,
  retry_at timestamptz,
  died_at timestamptz,
  failure text collate "C",
  primary key (reader, booking_id),
  check (change_id is null or (retry_at is null) <> (died_at is null))
);
create index feed_deliveries_due on feed_deliveries (reader, retry_at, change_id) where retry_at is not null;
create index feed_deliveries_dead on feed_deliveries (reader, died_at) where died_at is not null;
create index feed_deliveries_done on feed_deliveries (reader, done_id) where change_id is null;

create function owns_reader(reader text) returns boolean
language sql stable parallel safe
return exists (select from feed_readers where name = reader and owner = current_user);

alter table feed_deliveries enable row level security;
create policy look on feed_deliveries for select using (true);
create policy begin on feed_deliveries for insert with check (owns_reader(reader));
create policy move on feed_deliveries for update using (owns_reader(reader));

comment on table feed_deliveries is
  'What a reader of the feed has still to deliver although its place has passed it, and what it has delivered ahead of its place: one row for each reader and booking.';
comment on column feed_deliveries.reader is 'The reader: feed_readers.name.';
comment on column feed_deliveries.booking_id is 'The booking: bookings.booking_id.';
comment on column feed_deliveries.done_id is
  'The booking''s changes up to this id have been dealt with. Null: no more than feed_readers.last_id says.';
comment on column feed_deliveries.change_id is
  'The change that is to be delivered next. Null: none waits. Later changes of the booking wait behind it, or take its place if the reader wants the latest only.';
comment on column feed_deliveries.since_id is
  'The first change that was not delivered, and that change_id stands for. Null: it stands for itself.';
comment on column feed_deliveries.attempts is 'How often change_id has been tried. What failed while the breaker was open does not count.';
comment on column feed_deliveries.first_failed_at is 'When change_id failed first.';
comment on column feed_deliveries.last_failed_at is 'When an attempt failed last.';
comment on column feed_deliveries.retry_at is 'When change_id is due again. Null: it is dead, or none waits.';
comment on column feed_deliveries.died_at is
  'When the last attempt was used up. An operator replays the delivery or discards it. Null: it is alive, or none waits.';
comment on column feed_deliveries.failure is
  'Why the last attempt failed, as a class, such as http-500, timeout or an error''s code or name. Never a message, which may hold a guest''s data.';

create table feed_handed (
  reader text collate "C" not null references feed_readers on delete cascade,
  booking_id uuid not null,
  is_inside boolean not null,
  primary key (reader, booking_id)
);

alter table feed_handed enable row level security;
create policy look on feed_handed for select using (true);
create policy begin on feed_handed for insert with check (owns_reader(reader));
create policy move on feed_handed for update using (owns_reader(reader));

comment on table feed_handed is
  'The bookings that a reader with a filter by change, country or arrival has ever been given, also before it had the filter. It is told when one of them is deleted or erased, whatever its filter says.';
comment on column feed_handed.reader is 'The reader: feed_readers.name.';
comment on column feed_handed.booking_id is 'The booking: bookings.booking_id.';
comment on column feed_handed.is_inside is
  'Whether the reader''s filter let in what the booking held when it was last given. Once it does not, the reader is told that once.';

create table dead_letters (
  event_id uuid primary key,
  partner text collate "C",
  kind text collate "C",
  reference_kind text collate "C" check (reference_kind in ('trip', 'consumer')),
  reference text collate "C",
  sequence bigint,
  consumer_trip_arrival_date date,
  error_code text collate "C" not null,
  error text collate "C" not null,
  attempts integer not null,
  -- Bytes, since what PostgreSQL can't hold as JSON must not be lost either.
  envelope bytea not null,
  failed_at timestamptz not null default now(),
  replayed_at timestamptz,
  replayed_by text collate "C",
  resolved_at timestamptz,
  resolved_by text collate "C",
  resolution text collate "C"
);

-- What the operator still has to look at.
create index dead_letters_open on dead_letters (failed_at) where resolved_at is null;

-- Those of a booking.
create index dead_letters_by_reference on dead_letters using hash (reference);

-- "Which guests who arrive soon has one?"
create index dead_letters_open_by_arrival on dead_letters (consumer_trip_arrival_date)
  where resolved_at is null and consumer_trip_arrival_date is not null;

comment on table dead_letters is 'Events that could not be applied. An operator replays or discards them with ops.';
comment on column dead_letters.event_id is 'The id of the event.';
comment on column dead_letters.partner is 'Null: the event could not be read.';
comment on column dead_letters.kind is 'create, update or delete. Null: the event could not be read.';
comment on column dead_letters.reference_kind is
  'Whether it is the reference of a trip or of a consumer. Null: the event could not be read.';
comment on column dead_letters.reference is
  'The partner''s reference of the booking. Null: the event could not be read, or its booking has been erased.';
comment on column dead_letters.sequence is 'The event''s place in the order of receipt. Null: it could not be read.';
comment on column dead_letters.consumer_trip_arrival_date is
  'The day on which the guest arrives, by the event. Null: it says none, could not be read, or its booking has been erased.';
comment on column dead_letters.error_code is
  'Why: an SQLSTATE, a code of the operating system, or a code of the worker, such as INVALID_ENVELOPE.';
comment on column dead_letters.error is 'Why, as a sentence. It holds nothing of the payload.';
comment on column dead_letters.attempts is 'How often a worker tried to apply the event.';
comment on column dead_letters.envelope is
  'The event as it was in the queue, byte for byte. Empty: its booking has been erased.';
comment on column dead_letters.failed_at is 'When the last attempt failed.';
comment on column dead_letters.replayed_at is 'When an operator last put the event back into the queue.';
comment on column dead_letters.replayed_by is 'Who did.';
comment on column dead_letters.resolved_at is 'When nothing was left to do. Null: somebody has to look at it.';
comment on column dead_letters.resolved_by is 'Who resolved it.';
comment on column dead_letters.resolution is 'How: the event was applied after all, or why it was discarded.';

create table subscriptions (
  name text collate "C" primary key check (name ~ '^[A-Za-z0-9_-]{1,100}$'),
  url text collate "C",
  mode text collate "C" check (mode in ('latest', 'every')),
  payload text collate "C" not null check (payload in ('thin', 'full')),
  partners text[] collate "C" check (partners <> '{}'),
  changes text[] collate "C"
    check (changes <> '{}' and changes <@ array['created', 'updated', 'deleted', 'recreated', 'erased']),
  countries text[] collate "C" check (countries <> '{}'),
  arrival_from_days integer,
  arrival_to_days integer,
  from_id bigint not null,
  given_id bigint not null default 0,
  signature text collate "C" check (signature in ('hmac', 'ed25519')),
  signing_key text collate "C",
  previous_signing_key text collate "C",
  token_sha256 bytea check (length(token_sha256) = 32),
  previous_token_sha256 bytea check (length(previous_token_sha256) = 32),
  previous_key_until timestamptz,
  paused_at timestamptz,
  pause_reason text collate "C",
  paused_by text collate "C",
  created_at timestamptz not null default now(),
  created_by text collate "C" not null,
  updated_at timestamptz not null default now(),
  -- Each is posted to, with a signature, or pulled, with a token.
  check (num_nulls(url, mode, signature, signing_key) = case when token_sha256 is null then 0 else 4 end),
  check (
    (arrival_from_days is null) = (arrival_to_days is null) and arrival_from_days <= arrival_to_days is not false
  )
);

-- Whoever pulls is known by the token alone.
create unique index subscriptions_by_token on subscriptions (token_sha256) where token_sha256 is not null;
create index subscriptions_by_previous_token on subscriptions (previous_token_sha256)
  where previous_token_sha256 is not null;

-- A name of a channel has at most 63 bytes. Two schemas that share a channel only wake each other up.
create function notify_subscriptions() returns trigger
language plpgsql
as $$
begin
  perform pg_notify(
    case tg_table_schema when 'public' then 'subscriptions' else left(tg_table_schema, 49) || '_subscriptions' end, ''
  );
  return null;
end $$;
create trigger notify after insert or update or delete or truncate on subscriptions
  for each statement execute function notify_subscriptions();

comment on table subscriptions is
  'Who gets changes of bookings by signed webhooks, or pulls them over HTTP. Each is a reader of the same name in feed_readers. Every write notifies the channel subscriptions or, in another schema than public, the channel with the schema''s first 49 characters and _subscriptions.';
comment on column subscriptions.name is 'The name of the subscription, and of its reader. It begins the id of each post, in which Standard Webhooks forbids full stops.';
comment on column subscriptions.url is 'Where changes are posted to. Null: the subscriber pulls them.';
comment on column subscriptions.mode is
  'latest: what has waited is skipped if a newer change of the booking exists; every: each change is posted. Null: the subscriber pulls, which is every change.';
comment on column subscriptions.payload is 'thin: ids and the names of changed fields; full: the booking, too.';
comment on column subscriptions.partners is 'Only bookings of these partners. Null: of all.';
comment on column subscriptions.changes is
  'Only these changes. A booking that was reported is also reported when it is deleted or erased. Null: all.';
comment on column subscriptions.countries is
  'Only bookings with one of these destinations (ISO 3166-1 alpha-2). A booking that was reported is also reported when it leaves this filter, is deleted or erased. Null: all.';
comment on column subscriptions.arrival_from_days is
  'Only bookings that arrive at least so many days after the day of the change (UTC). As for countries, a booking that was reported is reported when it leaves. Null: all.';
comment on column subscriptions.arrival_to_days is 'As arrival_from_days: at most so many days after.';
comment on column subscriptions.from_id is
  'Posts begin after this change: the newest when it was added, or where a replay began. Whoever pulls begins where it asks.';
comment on column subscriptions.given_id is
  'How far its reader was before a replay moved it back.';
comment on column subscriptions.signature is
  'hmac: HMAC-SHA256 (v1 of Standard Webhooks); ed25519: its v1a. Null: the subscriber pulls.';
comment on column subscriptions.signing_key is
  'What posts are signed with. Of hmac: the secret, whsec_…; of ed25519: the private key, whsk_…. Null: the subscriber pulls.';
comment on column subscriptions.previous_signing_key is
  'The key before the last rotation. Until previous_key_until, posts are signed with it, too.';
comment on column subscriptions.token_sha256 is
  'The SHA-256 of the token by which the subscriber pulls. Null: changes are posted.';
comment on column subscriptions.previous_token_sha256 is
  'That of the token before the last rotation, which is valid until previous_key_until.';
comment on column subscriptions.previous_key_until is 'Until when the previous key or token is in use.';
comment on column subscriptions.paused_at is 'When it was paused: nothing is posted, and pulling is refused. Null: it is active.';
comment on column subscriptions.pause_reason is 'Why it was paused. Null: nobody said.';
comment on column subscriptions.paused_by is 'Who paused it: an operator, or webhooks, the process that posts.';
comment on column subscriptions.created_at is 'When it was added.';
comment on column subscriptions.created_by is 'The operator who added it.';
comment on column subscriptions.updated_at is 'When it was last changed.';

-- Digests of contents are keyed, since a guest's data can be guessed, and a plain digest would confirm the guess.
create table digest_key (
  is_only_row boolean primary key default true check (is_only_row),
  key bytea,
  fingerprint bytea
);

-- Each UUID has 122 random bits.
insert into digest_key (key) values
  (sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())));

comment on table digest_key is
  'One row: the key of content_digest, of guest_hashes and of erased bookings. Without it, none of these can be compared with anything.';
comment on column digest_key.is_only_row is 'Always true, and the primary key: the table has one row.';
comment on column digest_key.key is 'The key, made by the migration. Null: the operator keeps a key in DIGEST_KEY.';
comment on column digest_key.fingerprint is
  'A hash of the key in use, by which a process notices that it has another one. Null: no process has used one yet.';

create table erasures (
  id uuid primary key default gen_random_uuid(),
  erased_at timestamptz not null default clock_timestamp(),
  erased_by text collate "C" not null,
  reason text collate "C" not null,
  search text collate "C" not null check (search in ('email', 'phone', 'reference')),
  bookings integer not null default 0,
  events integer not null default 0,
  dead_letters integer not null default 0,
  jobs integer not null default 0
);

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

create table operator_actions (
  id uuid primary key,
  began_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  operator text collate "C" not null,
  command text collate "C" not null,
  arguments jsonb not null,
  outcome text collate "C" check (outcome in ('done', 'refused', 'failed', 'cancelled')),
  problem text collate "C",
  did jsonb not null,
  check ((outcome is null) = (ended_at is null))
);
create index operator_actions_began_at on operator_actions (began_at, id);

-- Who may act can complete an action that was begun. Nobody but the tables' owner can change or remove what is complete.
alter table operator_actions enable row level security;
create policy look on operator_actions for select using (true);
create policy begin on operator_actions for insert with check (true);
create policy complete on operator_actions for update using (outcome is null) with check (outcome is not null);

comment on table operator_actions is
  'What operators have done: one row for each command that changes something. It holds nothing of a guest, and no secret.';
comment on column operator_actions.id is 'A random id.';
comment on column operator_actions.began_at is 'When it was recorded first: before the action, if PostgreSQL could be reached.';
comment on column operator_actions.ended_at is 'When its end was recorded.';
comment on column operator_actions.operator is 'Who acted, in their own words.';
comment on column operator_actions.command is 'What was done, as the command line names it, such as partners revoke.';
comment on column operator_actions.arguments is 'To what, by ids and names of partners, secrets, events and subscriptions.';
comment on column operator_actions.outcome is
  'How it ended. Null: unknown. It goes on, or its process ended before it could be recorded.';
comment on column operator_actions.problem is 'Why it was refused or cancelled, or failed, as a sentence.';
comment on column operator_actions.did is 'What it has changed: counts, and ids of what is new.';

create table log_retention (
  is_only_row boolean primary key default true check (is_only_row),
  -- With a horizon in the future, every event would expire.
  horizon timestamptz check (horizon <= now()),
  retention_days integer,
  deleted_retention_days integer,
  dead_letter_retention_days integer,
  duplicate_window_hours integer,
  check (num_nulls(retention_days, deleted_retention_days, dead_letter_retention_days, duplicate_window_hours) in (0, 4))
);
insert into log_retention default values;

comment on table log_retention is 'One row: how much of the log has been removed, and by which settings workers go.';
comment on column log_retention.is_only_row is 'Always true, and the primary key: the table has one row.';
comment on column log_retention.horizon is
  'Events that were received before this time have been or are being removed. Null: all events are kept.';
comment on column log_retention.retention_days is 'RETENTION_DAYS of the worker that recorded it last. Null: none has.';
comment on column log_retention.deleted_retention_days is 'DELETED_RETENTION_DAYS, likewise.';
comment on column log_retention.dead_letter_retention_days is 'DEAD_LETTER_RETENTION_DAYS, likewise.';
comment on column log_retention.duplicate_window_hours is 'DUPLICATE_WINDOW_HOURS, likewise.';

-- The queue records which database it feeds. Dumps, standbys and restores have the same id, so to the queue they are the
-- same database.
create table database_id (
  is_only_row boolean primary key default true check (is_only_row),
  id uuid not null default gen_random_uuid()
);
insert into database_id default values;

comment on table database_id is 'One row: which database this is. The queue in Redis feeds one database.';
comment on column database_id.is_only_row is 'Always true, and the primary key: the table has one row.';
comment on column database_id.id is
  'A random id, made by the migration. A dump has it too. A copy that gets a queue of its own needs no other id, but a copy that is used beside this database and with the same Redis does.';

create table schema_migrations (
  name text collate "C" primary key,
  digest text collate "C" not null,
  allows_older boolean not null,
  run_at timestamptz not null default now()
);

comment on table schema_migrations is 'One row for each file that has made this schema.';
comment on column schema_migrations.name is 'The name of the file.';
comment on column schema_migrations.digest is
  'The SHA-256 of the file, by which a database that was made by other files is recognised.';
comment on column schema_migrations.allows_older is 'Whether releases that do not have the file can use the schema all the same.';
comment on column schema_migrations.run_at is 'When the transaction that ran it began.';

-- The feed's ids have no gaps, each booking numbers its changes, and each change names the event before it. So a reader
-- can prove that it has missed nothing. Programs that follow the feed keep their places in a table.

-- Up Migration

-- A worker of the release before this one can't append to the feed from here on, since it numbers no changes. It takes
-- that for an outage and waits until it is replaced. The tables are locked in the order in which it locks them.
alter table bookings
  -- The default is for the rows that are there. Most bookings have one change.
  add column revision integer not null default 1;
alter table booking_changes
  add column revision integer not null default 1,
  add column previous_event_id uuid,
  drop constraint booking_changes_change_check,
  add constraint booking_changes_change_check
    check (change in ('created', 'updated', 'deleted', 'recreated', 'erased'));

update booking_changes
set revision = numbered.revision, previous_event_id = numbered.previous_event_id
from (
  select id, row_number() over booking as revision, lag(event_id) over booking as previous_event_id
  from booking_changes
  window booking as (partition by partner, reference_kind, reference order by id)
) as numbered
where numbered.id = booking_changes.id and numbered.revision > 1;

update bookings
set revision = newest.revision
from (
  select partner, reference_kind, reference, max(revision) as revision
  from booking_changes
  group by partner, reference_kind, reference
) as newest
where newest.revision > 1 and bookings.partner = newest.partner
  and bookings.reference_kind = newest.reference_kind and bookings.reference = newest.reference;

alter table bookings alter column revision drop default;
alter table booking_changes alter column revision drop default;

-- One row, whose lock lets one transaction append to the feed at a time. An update that is rolled back gives its ids
-- back, as a sequence would not.
create table feed_position (
  is_only_row boolean primary key default true check (is_only_row),
  last_id bigint not null,
  gapless_from bigint not null
);

-- Rows at the end of the feed may have been deleted. A reader may have seen them, so their ids are not used again.
insert into feed_position (last_id, gapless_from)
select last_id, last_id + 1
from (
  select greatest(
    (select max(id) from booking_changes),
    pg_sequence_last_value(pg_get_serial_sequence('booking_changes', 'id')),
    0
  ) as last_id
) as feed;

alter table booking_changes alter column id drop identity;

create table feed_cursors (
  name text primary key,
  last_id bigint not null,
  moved_at timestamptz not null default now()
);

comment on column bookings.revision is 'How many changes the booking has had: the revision of its newest change.';

comment on table booking_changes is
  'The feed: one row for each change of a booking, written in the transaction that changed the booking. Ids are'
  ' visible in order and, from feed_position.gapless_from on, without gaps. Whoever has read id n has missed '
  'nothing if the next id is n + 1. Each transaction that appends notifies the channel booking_changes of its '
  'last id.';
comment on column booking_changes.id is
  'The place in the feed. A later change of a booking overrides an earlier one, even if its sequence is lower: '
  'it corrects the booking after a late event.';
comment on column booking_changes.change is
  'What happened to the booking: created, updated, deleted, recreated or erased (forgotten on request).';
comment on column booking_changes.event_id is
  'The event that decided the new state. Unless the booking is deleted or erased, its payload in booking_events'
  ' is the new content.';
comment on column booking_changes.previous_event_id is
  'The event that decided the state before. Unless the booking was deleted, its payload is the old content. '
  'Null: there was no booking.';
comment on column booking_changes.sequence is 'The sequence of event_id: its place in the order of receipt.';
comment on column booking_changes.revision is 'Numbers the changes of one booking: 1, 2, 3 and so on.';
comment on column booking_changes.changed_at is 'When the transaction that changed the booking began.';

comment on table feed_position is 'One row: how far booking_changes goes.';
comment on column feed_position.last_id is 'The id of the newest change.';
comment on column feed_position.gapless_from is
  'From this id on, booking_changes has every id up to last_id. Before it, rolled back transactions have left '
  'gaps. Changes that were deleted are missing from the start of the feed.';

comment on table feed_cursors is 'How far each program that follows the feed by @booking-events/feed has come.';
comment on column feed_cursors.name is 'The name under which the program follows.';
comment on column feed_cursors.last_id is 'The id of the last change that it has dealt with.';
comment on column feed_cursors.moved_at is 'When the transaction that moved the cursor last began.';

-- Gives the events whose sequence lies in the future the last places before now, in the order that they have.
-- When and how: "The sequence is far ahead or behind" in docs/runbook.md. No worker may run meanwhile. To run it twice does no
-- harm.

begin;

create temporary table renumbered on commit drop as
with limits as (
  -- As far ahead as ingest lets a number be.
  select (extract(epoch from now()) * 1000000)::bigint as now, 5 * 60 * 1000000 as ahead
),
last_right as (
  select greatest(now, (select max(sequence) from booking_events where sequence <= now + ahead)) as sequence from limits
)
select
  id,
  booking_events.sequence as old,
  last_right.sequence + row_number() over (order by booking_events.sequence, id) as new
from booking_events, limits, last_right
where booking_events.sequence > now + ahead;

update booking_events set sequence = new from renumbered where booking_events.id = renumbered.id;
update booking_events set newest_keyless_sequence = new from renumbered where newest_keyless_sequence = old;
update booking_changes set sequence = new from renumbered where event_id = renumbered.id;
update dead_letters set sequence = new from renumbered where event_id = renumbered.id;
update bookings set sequence = new from renumbered where event_id = renumbered.id;
update bookings set last_sequence = new from renumbered where last_sequence = old;
update bookings set newest_keyless_sequence = new from renumbered where newest_keyless_sequence = old;

commit;

-- Without an event there is nothing that new ones could come before: Redis' clock alone numbers them.
select coalesce('SET ''{booking-events}:sequence'' ' || max(sequence), 'DEL ''{booking-events}:sequence''')
  as "for redis-cli"
from booking_events;

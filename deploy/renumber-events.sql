-- Gives the events whose sequence lies in the future the last places before now, in the order that they have, in the
-- first schema of the search path and in that of test partners beside it. When and how: "The sequence is far ahead or
-- behind" in docs/runbook.md. No worker may run meanwhile. To run it twice does no harm.

do $$
declare
  now_us constant bigint := extract(epoch from now()) * 1000000;
  -- As far ahead as ingest lets a number be.
  latest_right constant bigint := now_us + 5 * 60 * 1000000;
  last_right bigint;
  last bigint;
  schema text;
begin
  foreach schema in array array[current_schema(), current_schema() || '_test_partners'] loop
    perform set_config('search_path', quote_ident(schema), true);
    last_right := greatest(now_us, (select max(sequence) from booking_events where sequence <= latest_right));
    -- With several shards, bookings may have equal sequences.
    create temporary table renumbered as
      select id, booking_key, sequence as old, last_right + row_number() over (order by sequence, id) as new
      from booking_events where sequence > latest_right;

    update booking_events set sequence = new from renumbered where booking_events.id = renumbered.id;
    update booking_events set newest_keyless_sequence = new from renumbered
      where booking_events.booking_key = renumbered.booking_key and newest_keyless_sequence = old;
    update booking_changes set sequence = new from renumbered where event_id = renumbered.id;
    update dead_letters set sequence = new from renumbered where event_id = renumbered.id;
    update bookings set sequence = new from renumbered where event_id = renumbered.id;
    update bookings set last_sequence = new from renumbered
      where bookings.booking_key = renumbered.booking_key and last_sequence = old;
    update bookings set newest_keyless_sequence = new from renumbered
      where bookings.booking_key = renumbered.booking_key and newest_keyless_sequence = old;

    drop table renumbered;
    last := greatest(last, (select max(sequence) from booking_events));
  end loop;
  perform set_config('booking_events.last_sequence', coalesce(last::text, ''), false);
end $$;

-- Without an event there is nothing that new ones could come before: Redis' clock alone numbers them.
select coalesce(
  'SET ''{booking-events}:sequence'' ' || nullif(current_setting('booking_events.last_sequence'), ''),
  'DEL ''{booking-events}:sequence'''
) as "for redis-cli";

-- The content of 500 deleted bookings was removed in one statement, however many events they had. With about a million,
-- it would have reached the limit of a statement each time, and stopped all removal. So the events are counted too.

-- Up Migration

select set_config('search_path', quote_ident(current_schema()) || ', pg_temp', true);

-- Removes the content of bookings that were deleted long ago, and of their events, and what leads to it. Bookings that
-- are in use wait for the next time. A booking with more events than may be emptied at once keeps its own content, and
-- what leads to it, until a later call has emptied the last of them.
create function empty_deleted_bookings(
  retention_days integer, max_bookings integer, max_events integer,
  out emptied_bookings integer, out emptied_events integer
)
language plpgsql security definer
set search_path from current
as $$
declare
  key bytea;
  ids uuid[];
begin
  emptied_bookings := 0;
  emptied_events := 0;
  for key in
    select booking_key from bookings
    where deleted_at < now() - make_interval(days => greatest(retention_days, 1)) and content_removed_at is null
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
    update bookings set payload = null, content_removed_at = now(),
      guest_hashes = case when guest_hashes is not null then '{}'::bigint[] end,
      arrival_date = null, arrival_at = null, return_date = null, return_at = null,
      destination_country = null, destination_airport = null
    where booking_key = key;
    emptied_bookings := emptied_bookings + 1;
  end loop;
end $$;
revoke execute on function empty_deleted_bookings from public;

-- For workers of the release before.
create or replace function remove_deleted_content(retention_days integer, max_bookings integer) returns integer
language sql security definer
set search_path from current
return (select emptied_bookings from empty_deleted_bookings(retention_days, max_bookings, 20000));

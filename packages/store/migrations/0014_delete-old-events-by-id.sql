-- The default partition may have many events that are not old: an import of bookings as of a month from before the
-- partitions, or a month in which no partition could be created. To find old ones, all of them were read every ten
-- minutes.

-- Up Migration

-- Deletes old events that are in no partition of one month: in the first partition, in the default one, or in a log
-- without partitions. Events that were applied a short time ago stay, even if they are old.
--
-- Old events have old ids. The ids of the default partition may also be of times to come, so the events behind those are
-- examined too.
create or replace function delete_old_events(retention_days integer, max_events integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  oldest constant timestamptz := advance_log_horizon(retention_days);
  target regclass;
  ids record;
  deleted integer := 0;
  total integer := 0;
begin
  for target in
    select oid from pg_class
    where oid in (to_regclass('booking_events'), to_regclass('booking_events_default')) and relkind = 'r'
    union all
    select partition from log_partitions() where starts is null
  loop
    for ids in
      select '00000000-0000-0000-0000-000000000000'::uuid as first, first_event_id(oldest) as beyond
      union all
      select first_event_id(now()), 'ffffffff-ffff-ffff-ffff-ffffffffffff'
      where target = to_regclass('booking_events_default')
    loop
      execute format(
        'delete from only %1$s where id in (
           select id from only %1$s where processed_at < $1 and id >= $2 and id < $3 order by id limit $4
         )', target
      ) using oldest, ids.first, ids.beyond, max_events - total;
      get diagnostics deleted = row_count;
      total := total + deleted;
    end loop;
  end loop;
  return total;
end $$;

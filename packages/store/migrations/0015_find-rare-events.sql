-- The newest events of a partner that sends little, and events with a rare outcome, were found by reading all events of
-- all partners. Outcomes that nearly every event has are left out: their events are found soon enough without an index.

-- Up Migration

-- Building the indexes of a large log would block writers. Maintenance does it without that: see build-indexes.ts, which
-- must have the same definitions.
do $$
begin
  if (
    select sum(pg_relation_size(oid)) <= 1073741824 from (
      select 'booking_events'::regclass as oid
      union all
      select inhrelid::regclass from pg_inherits where inhparent = 'booking_events'::regclass
    ) as log
  ) then
    create index booking_events_by_partner on booking_events (partner, id);
    create index booking_events_by_outcome on booking_events (outcome, id) where outcome not in ('created', 'updated');
  end if;
end $$;

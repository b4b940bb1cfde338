-- Partners compare their bookings with ours. For that, a partner's bookings are read in the order of their creation, in
-- which new ones are added to the end of the partner's part of the index.

-- Up Migration

-- Building the index of a large table would block writers. Maintenance does it without that: see build-indexes.ts.
do $$
begin
  if pg_relation_size('bookings') <= 1073741824 then
    create index bookings_by_partner on bookings (partner, created_at, booking_key);
  end if;
end $$;

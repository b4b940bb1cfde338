-- An idempotency key belongs to a booking: the log itself tells which event counts, by indexes that hold one entry for
-- each event that does.

-- Up Migration

drop table idempotency_keys;

alter table booking_events
  -- Codes, see `WarningCode` in fold.ts. Of an event with an idempotency key that counts, but for the booking's earliest
  -- with that key: 'key-reused'.
  add column warnings text[] not null default '{}';

-- The new name keeps a worker of an older release, which knows nothing of the new rules, from writing to the log: it
-- takes the column that it misses for an outage, and waits.
alter table booking_events rename column content_sequence_after to keyless_sequence_after;

comment on column booking_events.duplicate_of is
  'An event of the booking with the same idempotency key, kind and content, which was received before this one. This one takes no part in the fold.';

-- A booking's history in the order of its fold. What takes no part in it stands apart, so that a million repetitions
-- of one event are not in the way.
drop index booking_events_by_booking;
create index booking_events_by_booking on booking_events (booking_key, (duplicate_of is null), sequence);

-- The earliest event of a booking with an idempotency key.
create index booking_events_first_with_key on booking_events (booking_key, idempotency_key)
  where idempotency_key is not null and duplicate_of is null and 'key-reused' <> all (warnings);

-- Those that use it again, with another kind or content.
create index booking_events_reusing_key on booking_events (booking_key, idempotency_key, content_digest)
  where idempotency_key is not null and duplicate_of is null and 'key-reused' = any (warnings);

-- A key was the partner's until now, whatever the booking, the kind and the content. What was recorded stays. But the
-- events that were left out of the fold then, and would count now, can be found: no other duplicate has the warning.
update booking_events as repeat set warnings = '{key-reused}'
where duplicate_of is not null and not exists (
  select from booking_events as first
  where first.booking_key = repeat.booking_key and first.idempotency_key = repeat.idempotency_key
    and first.kind = repeat.kind and first.content_digest = repeat.content_digest
    and first.duplicate_of is null and 'key-reused' <> all (first.warnings)
);

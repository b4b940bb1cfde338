-- Readers of the feed know what they keep of a booking by the event that its last change named. After a late event with
-- the same content, the state is that event's, and readers are told nothing. So the event that they know is kept: the
-- next change names it, and if that is erased, they find what to erase.

-- Up Migration

alter table bookings add column feed_event_id uuid;

comment on column bookings.feed_event_id is
  'The event that the booking''s last change in the feed named. Null: it is event_id.';
comment on column booking_changes.previous_event_id is
  'The event of the booking''s change before. Unless the booking was deleted, its payload is the old content. '
  'Null: there was no booking.';

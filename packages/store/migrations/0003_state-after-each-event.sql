-- With each event in the log, the booking's state after it: a late event is folded in from its predecessor on, and the
-- fold ends where it comes to the state that is stored. So its cost depends on how late it is, and not on how many
-- events the booking has.

-- Up Migration

alter table booking_events
  -- Null: the event takes no part in the fold, or was applied before this column was there.
  add column state_after text check (state_after in ('active', 'deleted')),
  -- The event that decided the state. Null: this one.
  add column decided_by uuid,
  -- An event that sent the booking's content, whose payload it is. Null: this one or, of a delete, none: only deletes
  -- have been received.
  add column content_from uuid,
  -- Of the newest event without an idempotency key that sent the content.
  add column content_sequence_after bigint;

-- As content_from. Null in rows that were written before this column was there.
alter table bookings add column content_event_id uuid;

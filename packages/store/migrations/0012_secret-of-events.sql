-- With each event in the log, by which of its partner's secrets it came: after a leak, the events that may not be the
-- partner's can be listed.

-- Up Migration

-- Null: the event was accepted by an older release, or imported.
alter table booking_events add column secret_id text;

comment on column booking_events.secret_id is
  'The id, in the partners file, of the secret by which the event came. Null: an older release accepted the event, or it was imported.';

-- A trip and a consumer with the same reference are two bookings: a dead letter says which of them its reference is. So
-- one of them can be found, and erased, without the other.

-- Up Migration

-- Null: the event could not be read, or a worker of an older release wrote the letter. Such workers go on beside this.
alter table dead_letters
  add column reference_kind text check (reference_kind in ('trip', 'consumer'));

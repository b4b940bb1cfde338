-- The log of events, the bookings folded from it, the feed of changes, and the dead letters.

-- Up Migration

-- A booking's state: the fold of its events in sequence order.
create table bookings (
  -- SHA-256 of partner and reference (see booking-key.ts). A reference may be too long for an index row.
  booking_key bytea primary key,
  partner text not null,
  reference text not null,
  state text not null check (state in ('active', 'deleted')),
  -- The event that decided the state, and its place in the order of receipt.
  event_id uuid not null,
  sequence bigint not null,
  -- What the booking holds; of a deleted booking, what it held. Null: only a delete has been received.
  payload jsonb,
  content_digest bytea,
  -- The newest event without an idempotency key that sent this content: what a late retry is compared with.
  content_sequence bigint,
  -- The newest event that was folded in, whether it changed anything or not.
  last_sequence bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);

-- Every event that was accepted and processed. An event's id is its identity; it stands here once.
create table booking_events (
  id uuid primary key,
  partner text not null,
  kind text not null check (kind in ('create', 'update', 'delete')),
  reference text not null,
  booking_key bytea not null,
  sequence bigint not null,
  idempotency_key text,
  payload jsonb not null,
  content_digest bytea not null,
  outcome text not null check (
    outcome in ('created', 'updated', 'deleted', 'recreated', 'unchanged', 'duplicate', 'superseded')
  ),
  -- The event that came first with the same idempotency key. Such an event takes no part in the fold.
  duplicate_of uuid,
  received_at timestamptz not null,
  processed_at timestamptz not null default now()
);

-- A booking's history in the order of its fold.
create index booking_events_by_booking on booking_events (booking_key, sequence);

-- "Does this create repeat an earlier one?"
create index booking_events_creates on booking_events (booking_key, content_digest, sequence)
  where kind = 'create' and idempotency_key is null;

-- Which event owns an idempotency key: of those that carried it, the one received first. Kept for ever.
create table idempotency_keys (
  partner text collate "C" not null,
  idempotency_key text collate "C" not null,
  event_id uuid not null,
  sequence bigint not null,
  primary key (partner, idempotency_key)
);

-- One row for each change of a booking's state, written with the change. The feed for everything downstream.
create table booking_changes (
  id bigint generated always as identity primary key,
  partner text not null,
  reference text not null,
  change text not null check (change in ('created', 'updated', 'deleted', 'recreated')),
  -- The event that decided the new state; its payload is the new content.
  event_id uuid not null,
  sequence bigint not null,
  changed_at timestamptz not null default now()
);

-- Events that could not be applied. `envelope` is the job's data as it came from Redis, byte for byte: what PostgreSQL
-- can't hold as JSON must not be lost either.
create table dead_letters (
  event_id uuid primary key,
  partner text,
  kind text,
  reference text,
  sequence bigint,
  error_code text not null,
  error text not null,
  attempts integer not null,
  envelope bytea not null,
  failed_at timestamptz not null default now(),
  -- When and by whom it was last put back into the queue.
  replayed_at timestamptz,
  replayed_by text,
  -- Set when nothing is left to do: the event was applied after all, or was given up.
  resolved_at timestamptz,
  resolved_by text,
  resolution text
);

-- What the operator still has to look at.
create index dead_letters_open on dead_letters (failed_at) where resolved_at is null;

-- An idempotency key belongs to a booking: the log itself tells which event counts, by indexes that hold one entry for
-- each event that does. And the references of trips and of consumers are two namespaces.

-- Up Migration

-- The tables in the order in which a worker of an older release takes their locks: first those that it locks before it
-- needs others, so that neither waits for the other for good.
drop table if exists idempotency_keys;

-- Which of its two references a booking is known by. The default is for the rows that are there: nothing else may leave
-- it out.
alter table bookings
  add column reference_kind text not null default 'trip' check (reference_kind in ('trip', 'consumer'));

alter table booking_events
  -- Codes, see `WarningCode` in fold.ts. Of an event with an idempotency key that counts, but for the booking's earliest
  -- with that key: 'key-reused'.
  add column warnings text[] not null default '{}';

-- The new name keeps a worker of an older release, which knows nothing of the new rules, from writing to the log: it
-- takes the column that it misses for an outage, and waits.
alter table booking_events rename column content_sequence_after to keyless_sequence_after;

comment on column booking_events.duplicate_of is
  'An event of the booking with the same idempotency key, kind and content, which was received before this one. This one takes no part in the fold.';

alter table booking_events
  add column reference_kind text not null default 'trip' check (reference_kind in ('trip', 'consumer'));
alter table booking_changes
  add column reference_kind text not null default 'trip' check (reference_kind in ('trip', 'consumer'));

-- A booking is what the payload that it holds says, or the delete if it has never held any. Its whole log goes with it,
-- though an event of the other kind may be among it: what was recorded stays, and is what the booking was folded from.
update bookings set reference_kind = 'consumer'
where not coalesce(payload, (select payload from booking_events where id = event_id))
  ? 'consumerTripPartnerExternalReference';

drop index booking_events_by_booking;

-- As in booking-key.ts. The key of a booking with a trip reference is what it was.
create function consumer_booking_key(partner text, reference text) returns bytea
language sql stable
return sha256(convert_to(partner, 'UTF8') || '\x00'::bytea || convert_to('consumer', 'UTF8') || '\x00'::bytea
  || convert_to(reference, 'UTF8'));

update booking_events
set reference_kind = 'consumer',
  booking_key = consumer_booking_key(booking_events.partner, booking_events.reference)
from bookings
where bookings.booking_key = booking_events.booking_key and bookings.reference_kind = 'consumer';

update bookings set booking_key = consumer_booking_key(partner, reference) where reference_kind = 'consumer';

-- What was left out of the fold may belong to no booking.
update booking_events
set reference_kind = 'consumer', booking_key = consumer_booking_key(partner, reference)
where duplicate_of is not null and not payload ? 'consumerTripPartnerExternalReference'
  and not exists (select from bookings where bookings.booking_key = booking_events.booking_key);

update booking_changes set reference_kind = 'consumer'
from booking_events
where booking_events.id = booking_changes.event_id and booking_events.reference_kind = 'consumer';

drop function consumer_booking_key;
alter table bookings alter column reference_kind drop default;
alter table booking_events alter column reference_kind drop default;
alter table booking_changes alter column reference_kind drop default;

-- A booking's history in the order of its fold. What takes no part in it stands apart, so that a million repetitions
-- of one event are not in the way.
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

-- "Has this consumer bookings with trip references?" A hash, since a reference may be too long for an index row. Unlike
-- an index on the payload, the column lets an update that leaves it as it is touch no index.
alter table bookings add column consumer_hash bigint generated always as (
  case when reference_kind = 'trip' then
    hashtextextended(partner || ' ' || (payload ->> 'consumerPartnerExternalReference'), 0)
  end
) stored;
create index bookings_by_consumer on bookings (consumer_hash) where consumer_hash is not null;

-- As before, and then the kind of its reference.
create or replace view booking_details as
select
  partner,
  reference,
  state,
  sequence,
  payload ->> 'consumerGivenName' as consumer_given_name,
  payload ->> 'consumerPartnerExternalReference' as consumer_partner_external_reference,
  booking_phone(payload ->> 'consumerPhone') as consumer_phone,
  payload ->> 'consumerTripDepartureCityName' as consumer_trip_departure_city_name,
  payload ->> 'consumerTripDepartureCountryName' as consumer_trip_departure_country_name,
  payload ->> 'consumerTripDepartureAirportCode' as consumer_trip_departure_airport_code,
  payload ->> 'consumerTripDepartureAirportName' as consumer_trip_departure_airport_name,
  payload ->> 'consumerTripDepartureFlightNumber' as consumer_trip_departure_flight_number,
  payload ->> 'consumerTripArrivalAirportName' as consumer_trip_arrival_airport_name,
  payload ->> 'consumerTripArrivalFlightNumber' as consumer_trip_arrival_flight_number,
  payload ->> 'consumerTripAccommodationName' as consumer_trip_accommodation_name,
  payload ->> 'consumerTripAccommodationAddress' as consumer_trip_accommodation_address,
  payload ->> 'consumerTripVenueName' as consumer_trip_venue_name,
  payload ->> 'consumerTripVenueAddress' as consumer_trip_venue_address,
  payload ->> 'consumerTripDestinationName' as consumer_trip_destination_name,
  payload ->> 'consumerTripDestinationCountryName' as consumer_trip_destination_country_name,
  payload ->> 'consumerTripDestinationAirportCode' as consumer_trip_destination_airport_code,
  payload ->> 'consumerTripExternalProductName' as consumer_trip_external_product_name,
  booking_flag(payload ->> 'consumerTripIsInternational') as consumer_trip_is_international,
  booking_flag(payload ->> 'consumerTripIsRegional') as consumer_trip_is_regional,
  booking_flag(payload ->> 'consumerTripIsLocal') as consumer_trip_is_local,
  booking_date(payload ->> 'consumerTripArrivalDate') as consumer_trip_arrival_date,
  booking_moment(payload ->> 'consumerTripArrivalDate') as consumer_trip_arrival_at,
  booking_date(payload ->> 'consumerTripReturnDate') as consumer_trip_return_date,
  booking_moment(payload ->> 'consumerTripReturnDate') as consumer_trip_return_at,
  payload ->> 'agentPartnerExternalReference' as agent_partner_external_reference,
  payload ->> 'agentTimezone' as agent_timezone,
  booking_phone(payload ->> 'agentPhoneNumber') as agent_phone_number,
  payload ->> 'agentGivenName' as agent_given_name,
  payload ->> 'agentFamilyName' as agent_family_name,
  payload ->> 'agentEmail' as agent_email,
  booking_language(payload ->> 'consumerLanguage') as consumer_language,
  payload ->> 'consumerTripPartnerExternalReference' as consumer_trip_partner_external_reference,
  payload ->> 'consumerEmail' as consumer_email,
  payload ->> 'consumerNationality' as consumer_nationality,
  payload ->> 'consumerCurrency' as consumer_currency,
  created_at,
  updated_at,
  deleted_at,
  reference_kind
from bookings;

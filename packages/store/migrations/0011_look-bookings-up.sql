-- What people look bookings up by as typed, indexed columns: arrival, return, destination and reference. What was sent
-- beside each value that is normalised, and a count of what could not be.

-- Up Migration

-- A pattern is checked by LIKE, since a regular expression costs several times as much CPU time.
create or replace function booking_date(value text) returns date
language sql stable parallel safe
return case
  when value like '____-__-__%' and pg_input_is_valid(left(value, 10), 'date') then left(value, 10)::date
end;

create or replace function booking_moment(value text) returns timestamptz
language sql stable parallel safe
return case
  when value like '____-__-__T%' and pg_input_is_valid(value, 'timestamptz') then value::timestamptz
end;

-- A code of capital letters. In the collation C, only a to z have capitals.
create function booking_code(value text, shortest integer, longest integer) returns text
language sql immutable parallel safe
return case
  when length(btrim(value)) between shortest and longest and upper(btrim(value) collate "C") !~ '[^A-Z]'
    then upper(btrim(value) collate "C")
end;

-- The longest official name has 56 characters. An index row has no place for the longest text that partners may send.
create function booking_country(value text) returns text
language sql immutable parallel safe
return case when length(value) <= 100 then nullif(btrim(value), '') end;

create function booking_email(value text) returns text
language sql immutable parallel safe
return case when btrim(value) ~ '^[^@\s]+@[^@\s]+$' then lower(btrim(value)) end;

-- The columns that a booking has besides its payload. OFFSET keeps PostgreSQL from unpacking the payload, and from
-- looking for a field, each time that the result is used.
create function booking_trip(payload jsonb)
returns table (
  arrival_date date,
  arrival_at timestamptz,
  return_date date,
  return_at timestamptz,
  destination_country text,
  destination_airport text
)
language sql stable parallel safe
begin atomic
  select
    booking_date(arrival),
    booking_moment(arrival),
    booking_date(departure),
    booking_moment(departure),
    booking_country(country) collate "C",
    booking_code(airport, 3, 3) collate "C"
  from (
    select
      unpacked ->> 'consumerTripArrivalDate' as arrival,
      unpacked ->> 'consumerTripReturnDate' as departure,
      unpacked ->> 'consumerTripDestinationCountryName' as country,
      unpacked ->> 'consumerTripDestinationAirportCode' as airport
    from (select payload || '{}' as unpacked offset 0) as packed
    offset 0
  ) as sent;
end;

-- Without a default, or with a constant one, a column is added at once, however large the table is.
alter table bookings
  add column arrival_date date,
  add column arrival_at timestamptz,
  add column return_date date,
  add column return_at timestamptz,
  add column destination_country text collate "C",
  add column destination_airport text collate "C";

-- Bookings of before migration 0010 get the columns together with their guest_hashes, which tell that they have them.
-- Building the indexes of a large table would block writers. Maintenance does it without that: see build-indexes.ts,
-- which must have the same definitions.
do $$
begin
  if not exists (select from bookings) then
    create index bookings_erased on bookings (booking_key) where erased_at is not null;
    create index bookings_to_convert on bookings (booking_key) where guest_hashes is null;
    create index bookings_by_arrival on bookings (arrival_date, destination_country, destination_airport)
      where arrival_date is not null;
    create index bookings_by_return on bookings (return_date) where return_date is not null;
    create index bookings_by_reference on bookings using hash (reference);
  end if;
end $$;

-- A page keeps room for a new version of a row. An update then touches no index, unless it changes what is indexed.
alter table bookings set (fillfactor = 75);

-- Of bookings that are not converted yet, the payload is read. Once there are none, the index bookings_to_convert is
-- empty, and so this half costs nothing.
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
  arrival_date as consumer_trip_arrival_date,
  arrival_at as consumer_trip_arrival_at,
  return_date as consumer_trip_return_date,
  return_at as consumer_trip_return_at,
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
  reference_kind,
  payload ->> 'consumerPhone' as consumer_phone_as_sent,
  payload ->> 'consumerTripIsInternational' as consumer_trip_is_international_as_sent,
  payload ->> 'consumerTripIsRegional' as consumer_trip_is_regional_as_sent,
  payload ->> 'consumerTripIsLocal' as consumer_trip_is_local_as_sent,
  payload ->> 'consumerTripArrivalDate' as consumer_trip_arrival_date_as_sent,
  payload ->> 'consumerTripReturnDate' as consumer_trip_return_date_as_sent,
  payload ->> 'agentPhoneNumber' as agent_phone_number_as_sent,
  payload ->> 'consumerLanguage' as consumer_language_as_sent,
  booking_code(payload ->> 'consumerTripDepartureAirportCode', 3, 3) as consumer_trip_departure_airport_code_normalised,
  destination_country as consumer_trip_destination_country_name_normalised,
  destination_airport as consumer_trip_destination_airport_code_normalised,
  booking_email(payload ->> 'agentEmail') as agent_email_normalised,
  booking_email(payload ->> 'consumerEmail') as consumer_email_normalised,
  booking_code(payload ->> 'consumerNationality', 2, 3) as consumer_nationality_normalised,
  booking_code(payload ->> 'consumerCurrency', 3, 3) as consumer_currency_normalised
from (
  select partner, reference, reference_kind, state, sequence, payload, created_at, updated_at, deleted_at,
    arrival_date, arrival_at, return_date, return_at, destination_country, destination_airport
  from bookings
  where guest_hashes is not null
  union all
  select partner, reference, reference_kind, state, sequence, payload, created_at, updated_at, deleted_at,
    trip.arrival_date,
    trip.arrival_at,
    trip.return_date,
    trip.return_at,
    trip.destination_country collate "C",
    trip.destination_airport collate "C"
  from bookings, booking_trip(payload) as trip
  where guest_hashes is null
) as booking;

-- Removes the content of bookings that were deleted long ago, and of their events, and what leads to it. Bookings that
-- are in use wait for the next time.
create function remove_deleted_content(retention_days integer, max_bookings integer) returns integer
language plpgsql security definer
set search_path from current
as $$
declare
  keys bytea[];
begin
  keys := array(
    select booking_key from bookings
    where deleted_at < now() - make_interval(days => greatest(retention_days, 1)) and content_removed_at is null
    order by deleted_at
    limit max_bookings
    for update skip locked
  );
  update bookings set payload = null, content_removed_at = now(),
    guest_hashes = case when guest_hashes is not null then '{}'::bigint[] end,
    arrival_date = null, arrival_at = null, return_date = null, return_at = null,
    destination_country = null, destination_airport = null
  where booking_key = any(keys);
  update booking_events set payload = null where booking_key = any(keys) and payload is not null;
  return cardinality(keys);
end $$;
revoke execute on function remove_deleted_content from public;

create view booking_details_unreadable as
select
  partner,
  field,
  count(*) as bookings,
  (min(array[reference, reference_kind]))[1] as example_reference,
  (min(array[reference, reference_kind]))[2] as example_reference_kind
from booking_details cross join lateral (values
  ('consumerPhone', consumer_phone_as_sent, consumer_phone),
  ('agentPhoneNumber', agent_phone_number_as_sent, agent_phone_number),
  ('consumerTripIsInternational', consumer_trip_is_international_as_sent, consumer_trip_is_international::text),
  ('consumerTripIsRegional', consumer_trip_is_regional_as_sent, consumer_trip_is_regional::text),
  ('consumerTripIsLocal', consumer_trip_is_local_as_sent, consumer_trip_is_local::text),
  ('consumerTripArrivalDate', consumer_trip_arrival_date_as_sent, consumer_trip_arrival_date::text),
  ('consumerTripReturnDate', consumer_trip_return_date_as_sent, consumer_trip_return_date::text),
  ('consumerLanguage', consumer_language_as_sent, consumer_language),
  (
    'consumerTripDepartureAirportCode',
    consumer_trip_departure_airport_code,
    consumer_trip_departure_airport_code_normalised
  ),
  (
    'consumerTripDestinationCountryName',
    consumer_trip_destination_country_name,
    consumer_trip_destination_country_name_normalised
  ),
  (
    'consumerTripDestinationAirportCode',
    consumer_trip_destination_airport_code,
    consumer_trip_destination_airport_code_normalised
  ),
  ('agentEmail', agent_email, agent_email_normalised),
  ('consumerEmail', consumer_email, consumer_email_normalised),
  ('consumerNationality', consumer_nationality, consumer_nationality_normalised),
  ('consumerCurrency', consumer_currency, consumer_currency_normalised)
) as value (field, as_sent, normalised)
where state = 'active' and as_sent is not null and normalised is null
group by partner, field;

comment on column bookings.arrival_date is
  'consumerTripArrivalDate: the calendar day as the partner wrote it. These columns are null if the payload lacks a field, or its value cannot be read.';
comment on column bookings.arrival_at is 'consumerTripArrivalDate: the moment. Null if a day was sent.';
comment on column bookings.return_date is 'consumerTripReturnDate: the calendar day as the partner wrote it.';
comment on column bookings.return_at is 'consumerTripReturnDate: the moment. Null if a day was sent.';
comment on column bookings.destination_country is
  'consumerTripDestinationCountryName as sent, without white space around it. Null if it has more than 100 characters.';
comment on column bookings.destination_airport is
  'consumerTripDestinationAirportCode in capitals. Null if it has not the shape of an IATA code (three letters).';
comment on table booking_changes is
  'The feed: one row for each change of a booking, written in the transaction that changed the booking. Ids are visible in order and, from feed_position.gapless_from on, without gaps. Whoever has read id n has missed nothing if the next id is n + 1. Each transaction that appends notifies a channel of its last id: booking_changes, or in another schema than public, the channel with the schema''s name.';
comment on view booking_details is
  'The bookings with each field of the contract as a typed column. A value that cannot be normalised is null here, and the column …_as_sent or the one without …_normalised has it as it was sent. Further fields are only in bookings.payload.';
comment on column booking_details.consumer_phone_as_sent is 'consumerPhone, as sent.';
comment on column booking_details.consumer_trip_is_international_as_sent is 'consumerTripIsInternational, as sent.';
comment on column booking_details.consumer_trip_is_regional_as_sent is 'consumerTripIsRegional, as sent.';
comment on column booking_details.consumer_trip_is_local_as_sent is 'consumerTripIsLocal, as sent.';
comment on column booking_details.consumer_trip_arrival_date_as_sent is 'consumerTripArrivalDate, as sent.';
comment on column booking_details.consumer_trip_return_date_as_sent is 'consumerTripReturnDate, as sent.';
comment on column booking_details.agent_phone_number_as_sent is 'agentPhoneNumber, as sent.';
comment on column booking_details.consumer_language_as_sent is 'consumerLanguage, as sent.';
comment on column booking_details.consumer_trip_departure_airport_code_normalised is
  'consumerTripDepartureAirportCode in capitals, if it has the shape of an IATA code (three letters); else null.';
comment on column booking_details.consumer_trip_destination_country_name_normalised is
  'consumerTripDestinationCountryName without white space around it, if it has at most 100 characters; else null.';
comment on column booking_details.consumer_trip_destination_airport_code_normalised is
  'consumerTripDestinationAirportCode in capitals, if it has the shape of an IATA code (three letters); else null.';
comment on column booking_details.agent_email_normalised is
  'agentEmail in lower case and without white space around it; else null.';
comment on column booking_details.consumer_email_normalised is
  'consumerEmail in lower case and without white space around it; else null.';
comment on column booking_details.consumer_nationality_normalised is
  'consumerNationality in capitals, if it has the shape of an ISO 3166-1 code (two or three letters); else null.';
comment on column booking_details.consumer_currency_normalised is
  'consumerCurrency in capitals, if it has the shape of an ISO 4217 code (three letters); else null.';
comment on view booking_details_unreadable is
  'How many active bookings have a value that booking_details could not normalise, by partner and field. It reads all bookings.';
comment on column booking_details_unreadable.partner is 'bookings.partner.';
comment on column booking_details_unreadable.field is 'The field''s name in the contract.';
comment on column booking_details_unreadable.bookings is 'How many active bookings have such a value.';
comment on column booking_details_unreadable.example_reference is 'The reference of one of them.';
comment on column booking_details_unreadable.example_reference_kind is
  'Whether it is the reference of a trip or of a consumer.';

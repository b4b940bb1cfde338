-- The read model: every listed field of a booking as a typed column. Values are normalised here and only here, and a
-- value that can't be normalised reads as null: the payload still holds it as it was sent.

-- Up Migration

create function booking_flag(value text) returns boolean
language sql immutable parallel safe
return case
  when lower(btrim(value)) in ('true', 't', 'yes', 'y', '1') then true
  when lower(btrim(value)) in ('false', 'f', 'no', 'n', '0') then false
end;

-- The calendar day as the partner wrote it: in 2026-06-14T23:30:00-05:00 it is the 14th.
create function booking_date(value text) returns date
language sql stable parallel safe
return case
  when value ~ '^\d{4}-\d{2}-\d{2}' and pg_input_is_valid(left(value, 10), 'date') then left(value, 10)::date
end;

-- The moment, where the partner sent one. A day alone is no moment.
create function booking_moment(value text) returns timestamptz
language sql stable parallel safe
return case
  when value ~ '^\d{4}-\d{2}-\d{2}T' and pg_input_is_valid(value, 'timestamptz') then value::timestamptz
end;

-- E.164, from a number in international form (+ or 00) with the usual punctuation; a trunk zero in brackets, as in
-- +44 (0)20, is no part of it. A national number has no country to be completed with.
create function booking_phone(value text) returns text
language sql immutable parallel safe
return substring(
  regexp_replace(regexp_replace(value, '\(0\)|[\s().\-/]', '', 'g'), '^00', '+') from '^\+[1-9]\d{6,14}$'
);

-- A language tag in its canonical case: en_us, EN-US → en-US; zh-hant-tw → zh-Hant-TW.
create function booking_language(value text) returns text
language sql immutable parallel safe
return case
  when value ~* '^[a-z]{2,3}([-_][a-z]{4})?([-_]([a-z]{2}|\d{3}))?$' then (
    select string_agg(
      case when place = 1 then lower(part) when length(part) = 4 then initcap(part) else upper(part) end, '-'
      order by place
    )
    from regexp_split_to_table(value, '[-_]') with ordinality as parts (part, place)
  )
end;

create view booking_details as
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
  deleted_at
from bookings;

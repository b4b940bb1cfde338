-- The read model: every listed field of a booking as a typed column, for those who query the database. Values are
-- normalised here, and a value that can't be normalised reads as null: the payload still holds it as it was sent. The
-- columns that people look bookings up by are in the table, where they have indexes: see booking_trip.

create function booking_flag(value text) returns boolean
language sql immutable parallel safe
return case
  when lower(btrim(value)) in ('true', 't', 'yes', 'y', '1') then true
  when lower(btrim(value)) in ('false', 'f', 'no', 'n', '0') then false
end;

-- E.164, from a number in international form (+ or 00) with the usual punctuation; a trunk zero in brackets, as in
-- +44 (0)20, is no part of it. A national number has no country to be completed with.
--
-- Digits are 0 to 9, since in a database with an ICU locale \d matches those of other scripts too.
create function booking_phone(value text) returns text
language sql immutable parallel safe
return substring(
  regexp_replace(regexp_replace(value, '\(0\)|[\s().\-/]', '', 'g'), '^00', '+') from '^\+[1-9][0-9]{6,14}$'
);

-- A language tag in its canonical case: en_us, EN-US → en-US; zh-hant-tw → zh-Hant-TW.
create function booking_language(value text) returns text
language sql immutable parallel safe
return case
  when value collate "C" ~* '^[a-z]{2,3}([-_][a-z]{4})?([-_]([a-z]{2}|[0-9]{3}))?$' then (
    select string_agg(
      case when place = 1 then lower(part) when length(part) = 4 then initcap(part) else upper(part) end, '-'
      order by place
    )
    from regexp_split_to_table(value collate "C", '[-_]') with ordinality as parts (part, place)
  )
end;

-- A code of capital letters. In the collation C, only a to z have capitals.
create function booking_code(value text, shortest integer, longest integer) returns text
language sql immutable parallel safe
return case
  when length(btrim(value)) between shortest and longest and upper(btrim(value) collate "C") !~ '[^A-Z]'
    then upper(btrim(value) collate "C")
end;

-- In a Turkish locale, lower() would turn an I into a letter that is not ASCII.
create function booking_email(value text) returns text
language sql immutable parallel safe
return case when btrim(value) ~ '^[^@\s]+@[^@\s]+$' then lower(btrim(value) collate "C") end;

-- The longest official name has 56 characters. An index row has no place for the longest text that partners may send.
create function booking_country(value text) returns text
language sql immutable parallel safe
return case when length(value) <= 100 then nullif(btrim(value), '') end;

-- The calendar day as the partner wrote it: in 2026-06-14T23:30:00-05:00 it is the 14th. A pattern is checked by LIKE,
-- since a regular expression costs several times as much CPU time.
create function booking_date(value text) returns date
language sql stable parallel safe
return case
  when value like '____-__-__%' and pg_input_is_valid(left(value, 10), 'date') then left(value, 10)::date
end;

-- The moment, where the partner sent one. A day alone is no moment.
create function booking_moment(value text) returns timestamptz
language sql stable parallel safe
return case
  when value like '____-__-__T%' and pg_input_is_valid(value, 'timestamptz') then value::timestamptz
end;

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

create view booking_details as
select
  booking_id,
  partner,
  reference_kind,
  reference,
  state,
  sequence,
  payload ->> 'consumerPartnerExternalReference' as consumer_partner_external_reference,
  payload ->> 'consumerGivenName' as consumer_given_name,
  booking_phone(payload ->> 'consumerPhone') as consumer_phone,
  payload ->> 'consumerPhone' as consumer_phone_as_sent,
  payload ->> 'consumerEmail' as consumer_email,
  booking_email(payload ->> 'consumerEmail') as consumer_email_normalised,
  booking_language(payload ->> 'consumerLanguage') as consumer_language,
  payload ->> 'consumerLanguage' as consumer_language_as_sent,
  payload ->> 'consumerNationality' as consumer_nationality,
  booking_code(payload ->> 'consumerNationality', 2, 3) as consumer_nationality_normalised,
  payload ->> 'consumerCurrency' as consumer_currency,
  booking_code(payload ->> 'consumerCurrency', 3, 3) as consumer_currency_normalised,
  payload ->> 'consumerTripPartnerExternalReference' as consumer_trip_partner_external_reference,
  payload ->> 'consumerTripExternalProductName' as consumer_trip_external_product_name,
  booking_flag(payload ->> 'consumerTripIsInternational') as consumer_trip_is_international,
  payload ->> 'consumerTripIsInternational' as consumer_trip_is_international_as_sent,
  booking_flag(payload ->> 'consumerTripIsRegional') as consumer_trip_is_regional,
  payload ->> 'consumerTripIsRegional' as consumer_trip_is_regional_as_sent,
  booking_flag(payload ->> 'consumerTripIsLocal') as consumer_trip_is_local,
  payload ->> 'consumerTripIsLocal' as consumer_trip_is_local_as_sent,
  arrival_date as consumer_trip_arrival_date,
  arrival_at as consumer_trip_arrival_at,
  payload ->> 'consumerTripArrivalDate' as consumer_trip_arrival_date_as_sent,
  payload ->> 'consumerTripArrivalAirportName' as consumer_trip_arrival_airport_name,
  payload ->> 'consumerTripArrivalFlightNumber' as consumer_trip_arrival_flight_number,
  return_date as consumer_trip_return_date,
  return_at as consumer_trip_return_at,
  payload ->> 'consumerTripReturnDate' as consumer_trip_return_date_as_sent,
  payload ->> 'consumerTripDepartureCityName' as consumer_trip_departure_city_name,
  payload ->> 'consumerTripDepartureCountryName' as consumer_trip_departure_country_name,
  payload ->> 'consumerTripDepartureAirportCode' as consumer_trip_departure_airport_code,
  booking_code(payload ->> 'consumerTripDepartureAirportCode', 3, 3) as consumer_trip_departure_airport_code_normalised,
  payload ->> 'consumerTripDepartureAirportName' as consumer_trip_departure_airport_name,
  payload ->> 'consumerTripDepartureFlightNumber' as consumer_trip_departure_flight_number,
  payload ->> 'consumerTripDestinationName' as consumer_trip_destination_name,
  payload ->> 'consumerTripDestinationCountryName' as consumer_trip_destination_country_name,
  destination_country as consumer_trip_destination_country_name_normalised,
  payload ->> 'consumerTripDestinationAirportCode' as consumer_trip_destination_airport_code,
  destination_airport as consumer_trip_destination_airport_code_normalised,
  payload ->> 'consumerTripAccommodationName' as consumer_trip_accommodation_name,
  payload ->> 'consumerTripAccommodationAddress' as consumer_trip_accommodation_address,
  payload ->> 'consumerTripVenueName' as consumer_trip_venue_name,
  payload ->> 'consumerTripVenueAddress' as consumer_trip_venue_address,
  payload ->> 'agentPartnerExternalReference' as agent_partner_external_reference,
  payload ->> 'agentGivenName' as agent_given_name,
  payload ->> 'agentFamilyName' as agent_family_name,
  payload ->> 'agentEmail' as agent_email,
  booking_email(payload ->> 'agentEmail') as agent_email_normalised,
  booking_phone(payload ->> 'agentPhoneNumber') as agent_phone_number,
  payload ->> 'agentPhoneNumber' as agent_phone_number_as_sent,
  payload ->> 'agentTimezone' as agent_timezone,
  created_at,
  updated_at,
  deleted_at
from bookings;

comment on view booking_details is
  'The bookings with each field of the contract as a typed column. A value that cannot be normalised is null here, and the column …_as_sent or the one without …_normalised has it as it was sent. Further fields are only in bookings.payload.';
comment on column booking_details.consumer_phone is 'consumerPhone in E.164, if it was sent in international form.';
comment on column booking_details.consumer_email_normalised is
  'consumerEmail in lower case and without white space around it; else null.';
comment on column booking_details.consumer_language is
  'consumerLanguage as a language tag in its canonical case, such as en-US.';
comment on column booking_details.consumer_nationality_normalised is
  'consumerNationality in capitals, if it has the shape of an ISO 3166-1 code (two or three letters); else null.';
comment on column booking_details.consumer_currency_normalised is
  'consumerCurrency in capitals, if it has the shape of an ISO 4217 code (three letters); else null.';
comment on column booking_details.consumer_trip_is_international is
  'consumerTripIsInternational: true for true, t, yes, y and 1; false for false, f, no, n and 0; else null.';
comment on column booking_details.consumer_trip_is_regional is
  'consumerTripIsRegional: true for true, t, yes, y and 1; false for false, f, no, n and 0; else null.';
comment on column booking_details.consumer_trip_is_local is
  'consumerTripIsLocal: true for true, t, yes, y and 1; false for false, f, no, n and 0; else null.';
comment on column booking_details.consumer_trip_arrival_date is
  'consumerTripArrivalDate: the calendar day as the partner wrote it.';
comment on column booking_details.consumer_trip_arrival_at is
  'consumerTripArrivalDate: the moment. Null if a day was sent.';
comment on column booking_details.consumer_trip_return_date is
  'consumerTripReturnDate: the calendar day as the partner wrote it.';
comment on column booking_details.consumer_trip_return_at is
  'consumerTripReturnDate: the moment. Null if a day was sent.';
comment on column booking_details.consumer_trip_departure_airport_code_normalised is
  'consumerTripDepartureAirportCode in capitals, if it has the shape of an IATA code (three letters); else null.';
comment on column booking_details.consumer_trip_destination_country_name_normalised is
  'consumerTripDestinationCountryName without white space around it, if it has at most 100 characters; else null.';
comment on column booking_details.consumer_trip_destination_airport_code_normalised is
  'consumerTripDestinationAirportCode in capitals, if it has the shape of an IATA code (three letters); else null.';
comment on column booking_details.agent_email_normalised is
  'agentEmail in lower case and without white space around it; else null.';
comment on column booking_details.agent_phone_number is
  'agentPhoneNumber in E.164, if it was sent in international form.';

-- The names of the others say what they hold: a column of bookings, or a field as it was sent.
do $$
declare
  described record;
begin
  for described in
    select attname, attname in (select attname from pg_attribute where attrelid = 'bookings'::regclass) as is_column,
      string_to_array(regexp_replace(attname, '_as_sent$', ''), '_') as words
    from pg_attribute
    where attrelid = 'booking_details'::regclass and col_description(attrelid, attnum) is null
      and attname !~ '_normalised$'
  loop
    execute format('comment on column booking_details.%I is %L', described.attname, case
      when described.is_column then format('bookings.%s.', described.attname)
      else described.words[1] || replace(initcap(array_to_string(described.words[2:], ' ') collate "C"), ' ', '') || ', as sent.'
    end);
  end loop;
end $$;

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

comment on view booking_details_unreadable is
  'How many active bookings have a value that booking_details could not normalise, by partner and field. It reads all bookings.';
comment on column booking_details_unreadable.partner is 'bookings.partner.';
comment on column booking_details_unreadable.field is 'The field''s name in the contract.';
comment on column booking_details_unreadable.bookings is 'How many active bookings have such a value.';
comment on column booking_details_unreadable.example_reference is 'The reference of one of them.';
comment on column booking_details_unreadable.example_reference_kind is
  'Whether it is the reference of a trip or of a consumer.';

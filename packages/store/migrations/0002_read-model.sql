-- The read model: every listed field of a booking as a typed column, for those who query the database. The worker reads
-- the values when it applies an event, so there are columns of bookings for them. A value that can't be read is null: the
-- payload still holds it as it was sent.

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
  consumer_phone,
  consumer_phone_is_assumed,
  payload ->> 'consumerPhone' as consumer_phone_as_sent,
  payload ->> 'consumerEmail' as consumer_email,
  consumer_email as consumer_email_normalised,
  consumer_language,
  payload ->> 'consumerLanguage' as consumer_language_as_sent,
  payload ->> 'consumerNationality' as consumer_nationality,
  consumer_nationality as consumer_nationality_normalised,
  payload ->> 'consumerCurrency' as consumer_currency,
  consumer_currency as consumer_currency_normalised,
  payload ->> 'consumerTripPartnerExternalReference' as consumer_trip_partner_external_reference,
  payload ->> 'consumerTripExternalProductName' as consumer_trip_external_product_name,
  consumer_trip_is_international,
  payload ->> 'consumerTripIsInternational' as consumer_trip_is_international_as_sent,
  consumer_trip_is_regional,
  payload ->> 'consumerTripIsRegional' as consumer_trip_is_regional_as_sent,
  consumer_trip_is_local,
  payload ->> 'consumerTripIsLocal' as consumer_trip_is_local_as_sent,
  consumer_trip_arrival_date,
  consumer_trip_arrival_at,
  payload ->> 'consumerTripArrivalDate' as consumer_trip_arrival_date_as_sent,
  payload ->> 'consumerTripArrivalAirportName' as consumer_trip_arrival_airport_name,
  payload ->> 'consumerTripArrivalFlightNumber' as consumer_trip_arrival_flight_number,
  consumer_trip_return_date,
  consumer_trip_return_at,
  payload ->> 'consumerTripReturnDate' as consumer_trip_return_date_as_sent,
  payload ->> 'consumerTripDepartureCityName' as consumer_trip_departure_city_name,
  payload ->> 'consumerTripDepartureCountryName' as consumer_trip_departure_country_name,
  consumer_trip_departure_country_name as consumer_trip_departure_country_name_normalised,
  consumer_trip_departure_country_code,
  payload ->> 'consumerTripDepartureAirportCode' as consumer_trip_departure_airport_code,
  consumer_trip_departure_airport_code as consumer_trip_departure_airport_code_normalised,
  payload ->> 'consumerTripDepartureAirportName' as consumer_trip_departure_airport_name,
  payload ->> 'consumerTripDepartureFlightNumber' as consumer_trip_departure_flight_number,
  payload ->> 'consumerTripDestinationName' as consumer_trip_destination_name,
  payload ->> 'consumerTripDestinationCountryName' as consumer_trip_destination_country_name,
  consumer_trip_destination_country_name as consumer_trip_destination_country_name_normalised,
  consumer_trip_destination_country_code,
  payload ->> 'consumerTripDestinationAirportCode' as consumer_trip_destination_airport_code,
  consumer_trip_destination_airport_code as consumer_trip_destination_airport_code_normalised,
  payload ->> 'consumerTripAccommodationName' as consumer_trip_accommodation_name,
  payload ->> 'consumerTripAccommodationAddress' as consumer_trip_accommodation_address,
  payload ->> 'consumerTripVenueName' as consumer_trip_venue_name,
  payload ->> 'consumerTripVenueAddress' as consumer_trip_venue_address,
  payload ->> 'agentPartnerExternalReference' as agent_partner_external_reference,
  payload ->> 'agentGivenName' as agent_given_name,
  payload ->> 'agentFamilyName' as agent_family_name,
  payload ->> 'agentEmail' as agent_email,
  agent_email as agent_email_normalised,
  agent_phone_number,
  agent_phone_number_is_assumed,
  payload ->> 'agentPhoneNumber' as agent_phone_number_as_sent,
  payload ->> 'agentTimezone' as agent_timezone,
  agent_timezone as agent_timezone_normalised,
  created_at,
  updated_at,
  deleted_at
from bookings;

comment on view booking_details is
  'The bookings with each field of the contract as a typed column. A value that cannot be read is null here, and the column …_as_sent or the one without …_normalised has it as it was sent. Further fields are only in bookings.payload.';

-- The names say what the columns hold: a field as it was sent, or a column of bookings.
do $$
declare
  described record;
begin
  for described in
    with named as (
      select attname, regexp_replace(attname, '_normalised$', '') as source,
        string_to_array(regexp_replace(attname, '_as_sent$', ''), '_') as words
      from pg_attribute where attrelid = 'booking_details'::regclass
    )
    select attname, words, col_description('bookings'::regclass, attnum) as comment
    from named left join (select attnum, attname as source from pg_attribute where attrelid = 'bookings'::regclass) as columns
      on columns.source = named.source and attname || '_normalised' <> all (select attname from named)
  loop
    execute format('comment on column booking_details.%I is %L', described.attname, coalesce(
      described.comment,
      described.words[1] || replace(initcap(array_to_string(described.words[2:], ' ') collate "C"), ' ', '') || ', as sent.'
    ));
  end loop;
end $$;

create view booking_details_unreadable as
select
  partner,
  field,
  count(*) as bookings,
  (min(array[reference, reference_kind]))[1] as example_reference,
  (min(array[reference, reference_kind]))[2] as example_reference_kind
from bookings cross join lateral (values
  ('consumerPhone', consumer_phone is null),
  ('consumerEmail', consumer_email is null),
  ('consumerLanguage', consumer_language is null),
  ('consumerNationality', consumer_nationality is null),
  ('consumerCurrency', consumer_currency is null),
  ('consumerTripIsInternational', consumer_trip_is_international is null),
  ('consumerTripIsRegional', consumer_trip_is_regional is null),
  ('consumerTripIsLocal', consumer_trip_is_local is null),
  ('consumerTripArrivalDate', consumer_trip_arrival_date is null),
  ('consumerTripReturnDate', consumer_trip_return_date is null),
  ('consumerTripDepartureCountryName', consumer_trip_departure_country_code is null),
  ('consumerTripDepartureAirportCode', consumer_trip_departure_airport_code is null),
  ('consumerTripDestinationCountryName', consumer_trip_destination_country_code is null),
  ('consumerTripDestinationAirportCode', consumer_trip_destination_airport_code is null),
  ('agentTimezone', agent_timezone is null),
  ('agentPhoneNumber', agent_phone_number is null),
  ('agentEmail', agent_email is null)
) as value (field, is_unread)
where state = 'active' and is_unread and payload ? field
  and case jsonb_typeof(payload -> field)
    when 'null' then false
    -- A text in which nothing can be seen is no value. These are the characters that JavaScript's trim removes, and
    -- Unicode's default-ignorable ones, whatever the locale.
    when 'string' then payload ->> field ~ (
      '[^ \t-\r\u00A0\u00AD\u034F\u061C\u115F\u1160\u1680\u17B4\u17B5\u180B-\u180F\u2000-\u200F\u2028-\u202F\u205F-\u206F'
      '\u3000\u3164\uFE00-\uFE0F\uFEFF\uFFA0\uFFF0-\uFFF8\U0001BCA0-\U0001BCA3\U0001D173-\U0001D17A\U000E0000-\U000E0FFF]'
    )
    else true
  end
group by partner, field;

comment on view booking_details_unreadable is
  'How many active bookings have a value that the worker could not read, by partner and field. It reads all bookings.';
comment on column booking_details_unreadable.partner is 'bookings.partner.';
comment on column booking_details_unreadable.field is 'The field''s name in the contract.';
comment on column booking_details_unreadable.bookings is 'How many active bookings have such a value.';
comment on column booking_details_unreadable.example_reference is 'The reference of one of them.';
comment on column booking_details_unreadable.example_reference_kind is
  'Whether it is the reference of a trip or of a consumer.';

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

-- The history of a booking: what each event has left. The fold has recorded it with the events, so this only looks it up.
--
-- The subquery of the events has "offset 0" for the planner. It knows nothing about references, and would rather read
-- the whole log than look up a booking's events. A content is looked up only if its column is selected.
create view booking_history as
select
  booking.booking_id,
  booking.partner,
  booking.reference_kind,
  booking.reference,
  event.id as event_id,
  event.kind,
  event.outcome,
  event.sequence,
  event.received_at,
  event.processed_at,
  event.secret_id,
  event.duplicate_of,
  event.warnings,
  event.payload,
  event.state_after,
  case when event.state_after is not null then coalesce(event.decided_by, event.id) end as decided_by,
  case when event.kind = 'delete' or event.state_after is null then event.content_from
    else coalesce(event.content_from, event.id) end as content_from,
  case when event.state_after is null then null
    when event.content_from is null then case when event.kind <> 'delete' then event.payload end
    else coalesce(
      (select source.payload from booking_events as source where source.id = event.content_from limit 1),
      case when booking.content_event_id = event.content_from then booking.payload end
    )
  end as payload_after
from bookings as booking
cross join lateral (
  select * from booking_events where booking_events.booking_key = booking.booking_key offset 0
) as event;

comment on view booking_history is
  'One row for each event of a booking, with the state after it. Select a booking by partner and reference, or by booking_id: that takes milliseconds, whatever the size of the log. sequence is the order. For questions about many bookings, query booking_events.';
comment on column booking_history.booking_id is 'bookings.booking_id.';
comment on column booking_history.partner is 'The id of the partner that sends the booking.';
comment on column booking_history.reference_kind is 'Whether it is the reference of a trip or of a consumer.';
comment on column booking_history.reference is 'bookings.reference.';
comment on column booking_history.event_id is 'booking_events.id.';
comment on column booking_history.kind is 'create, update or delete.';
comment on column booking_history.outcome is 'What the event did: see booking_events.outcome.';
comment on column booking_history.sequence is 'The place in the order of receipt: see booking_events.sequence.';
comment on column booking_history.received_at is 'When ingest received the event, by its own clock.';
comment on column booking_history.processed_at is 'When the transaction that applied the event began.';
comment on column booking_history.secret_id is
  'The id, in the partners file, of the secret by which the event came. Null: an operator imported or restored it.';
comment on column booking_history.duplicate_of is 'See booking_events.duplicate_of.';
comment on column booking_history.warnings is 'See booking_events.warnings.';
comment on column booking_history.payload is 'What the event sent. Null: it has been removed.';
comment on column booking_history.state_after is
  'The booking''s state after the event: active or deleted. Null: the event takes no part in the fold, and the state is that of the row before.';
comment on column booking_history.decided_by is 'The event that decided state_after: this one or an earlier one.';
comment on column booking_history.content_from is
  'An event whose payload is the booking''s content after this event. Null: only deletes had been received, or state_after is null.';
comment on column booking_history.payload_after is
  'The booking''s content after the event; of a deleted booking, its last one. Null: there was none, or it has been removed.';

-- Each booking as it was at a time: the last row of its history until then. PostgreSQL puts the query of a function like
-- this into the one that calls it, so a condition on the partner and the reference finds the booking by its index.
create function booking_at(at timestamptz) returns setof booking_history
language sql stable parallel safe
begin atomic
  select
    booking.booking_id, booking.partner, booking.reference_kind, booking.reference, event.id, event.kind, event.outcome,
    event.sequence, event.received_at, event.processed_at, event.secret_id, event.duplicate_of, event.warnings,
    event.payload, event.state_after, coalesce(event.decided_by, event.id),
    case when event.kind = 'delete' then event.content_from else coalesce(event.content_from, event.id) end,
    case
      when event.content_from is null then case when event.kind <> 'delete' then event.payload end
      else coalesce(
        (select source.payload from booking_events as source where source.id = event.content_from limit 1),
        case when booking.content_event_id = event.content_from then booking.payload end
      )
    end
  from bookings as booking
  cross join lateral (
    select * from booking_events
    where booking_events.booking_key = booking.booking_key and booking_events.duplicate_of is null
      and booking_events.state_after is not null
      and booking_events.sequence <= (extract(epoch from booking_at.at) * 1000000)::bigint
    order by booking_events.sequence desc, booking_events.id desc
    limit 1
  ) as event;
end;
revoke execute on function booking_at from public;

comment on function booking_at is
  'Each booking that had been received by that time, as it was then: the last row of booking_history until that time of receipt. A booking is missing if it came later, or if the log no longer has it from then. Select a booking by partner and reference: select * from booking_at(''2026-11-20 14:00Z'') where partner = ''acme'' and reference = ''TRIP-1''.';

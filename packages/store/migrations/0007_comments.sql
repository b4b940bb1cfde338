-- What each table and column holds, for those who query the database.

-- Up Migration

comment on table bookings is
  'One row for each booking: its state now, which is the fold of its events in sequence order. A deleted booking stays, so that a late event cannot bring it back.';
comment on column bookings.booking_key is
  'The SHA-256 of the partner, the kind of the reference and the reference: the booking''s identity.';
comment on column bookings.partner is 'The id of the partner that sends the booking.';
comment on column bookings.reference is 'The partner''s reference of the booking.';
comment on column bookings.reference_kind is
  'Which reference it is: the trip''s, or the consumer''s of a booking that was sent without a trip reference. Each kind is a namespace of its own.';
comment on column bookings.state is 'active or deleted.';
comment on column bookings.event_id is 'The event that decided the state.';
comment on column bookings.sequence is 'The sequence of event_id: its place in the order of receipt.';
comment on column bookings.payload is
  'What the booking holds, as the partner sent it; of a deleted booking, what it held. Null: only deletes have been received.';
comment on column bookings.content_digest is 'The SHA-256 of the payload in its canonical form.';
comment on column bookings.content_event_id is
  'An event that sent the payload. Null: there is no payload, or it was applied by a release that did not note it.';
comment on column bookings.content_sequence is
  'The sequence of the newest event without an idempotency key that sent the payload: what a late retry is compared with.';
comment on column bookings.last_sequence is
  'The sequence of the newest event that was folded in, whether it changed anything or not.';
comment on column bookings.consumer_hash is
  'A hash of the consumer''s reference of a booking with a trip reference, by which a consumer''s trips are found.';
comment on column bookings.created_at is 'When the first event of the booking was received.';
comment on column bookings.updated_at is 'When the event was received that decided the state.';
comment on column bookings.deleted_at is 'When the event was received that deleted the booking. Null: it is active.';

comment on table booking_events is
  'The log: every event that was accepted and processed, once. Its id is its identity; sequence is its place in the order of receipt.';
comment on column booking_events.id is 'The id that the partner got as a receipt: a UUIDv7, which begins with the time of receipt.';
comment on column booking_events.partner is 'The id of the partner that sent the event.';
comment on column booking_events.kind is 'create, update or delete.';
comment on column booking_events.reference is 'The partner''s reference of the booking.';
comment on column booking_events.reference_kind is 'Whether it is the reference of a trip or of a consumer.';
comment on column booking_events.booking_key is 'The booking: see bookings.booking_key.';
comment on column booking_events.sequence is
  'The place in the order of receipt at all ingests: microseconds since 1970 by Redis'' clock, or one more than the event before.';
comment on column booking_events.idempotency_key is 'The partner''s key of the event. Null: it was sent without one.';
comment on column booking_events.payload is 'What the partner sent.';
comment on column booking_events.content_digest is 'The SHA-256 of the payload in its canonical form.';
comment on column booking_events.outcome is
  'What the event did: created, updated, deleted or recreated the booking; unchanged; duplicate: it repeats an earlier one; superseded: it was applied after a later one, which decided the state.';
comment on column booking_events.warnings is
  'Codes of the sender''s probable mistakes: key-reused, reference-kind.';
comment on column booking_events.received_at is 'When ingest received the event, by its own clock.';
comment on column booking_events.processed_at is 'When the transaction that applied the event began.';
comment on column booking_events.state_after is
  'The booking''s state after this event. Null: the event takes no part in the fold, or was applied by a release that did not note it.';
comment on column booking_events.decided_by is 'The event that decided state_after. Null: this one.';
comment on column booking_events.content_from is
  'An event whose payload is the booking''s content after this event. Null: this one or, of a delete, none.';
comment on column booking_events.keyless_sequence_after is 'bookings.content_sequence after this event.';

comment on table dead_letters is
  'Events that could not be applied. An operator replays or discards them with ops.';
comment on column dead_letters.event_id is 'The id of the event.';
comment on column dead_letters.partner is 'Null: the event could not be read.';
comment on column dead_letters.kind is 'create, update or delete. Null: the event could not be read.';
comment on column dead_letters.reference is 'The partner''s reference of the booking. Null: the event could not be read.';
comment on column dead_letters.reference_kind is
  'Whether it is the reference of a trip or of a consumer. Null: the event could not be read, or an older release wrote the row.';
comment on column dead_letters.sequence is 'The event''s place in the order of receipt. Null: it could not be read.';
comment on column dead_letters.error_code is
  'Why: an SQLSTATE, a code of the operating system, or a code of the worker, such as INVALID_ENVELOPE.';
comment on column dead_letters.error is 'Why, as a sentence. It holds nothing of the payload.';
comment on column dead_letters.attempts is 'How often a worker tried to apply the event.';
comment on column dead_letters.envelope is 'The event as it was in the queue, byte for byte.';
comment on column dead_letters.failed_at is 'When the last attempt failed.';
comment on column dead_letters.replayed_at is 'When an operator last put the event back into the queue.';
comment on column dead_letters.replayed_by is 'Who did.';
comment on column dead_letters.resolved_at is 'When nothing was left to do. Null: somebody has to look at it.';
comment on column dead_letters.resolved_by is 'Who resolved it.';
comment on column dead_letters.resolution is 'How: the event was applied after all, or why it was discarded.';

comment on column booking_changes.partner is 'The id of the partner that sends the booking.';
comment on column booking_changes.reference is 'The partner''s reference of the booking.';
comment on column booking_changes.reference_kind is 'Whether it is the reference of a trip or of a consumer.';

comment on column feed_position.is_only_row is 'Always true, and the primary key: the table has one row.';

comment on view booking_details is
  'The bookings with each field of the contract as a typed column. A value that cannot be normalised is null here; bookings.payload has it as it was sent. Further fields are only there.';
comment on column booking_details.partner is 'bookings.partner.';
comment on column booking_details.reference is 'bookings.reference.';
comment on column booking_details.state is 'bookings.state.';
comment on column booking_details.sequence is 'bookings.sequence.';
comment on column booking_details.consumer_given_name is 'consumerGivenName, as sent.';
comment on column booking_details.consumer_partner_external_reference is 'consumerPartnerExternalReference, as sent.';
comment on column booking_details.consumer_phone is 'consumerPhone in E.164, if it was sent in international form.';
comment on column booking_details.consumer_trip_departure_city_name is 'consumerTripDepartureCityName, as sent.';
comment on column booking_details.consumer_trip_departure_country_name is 'consumerTripDepartureCountryName, as sent.';
comment on column booking_details.consumer_trip_departure_airport_code is 'consumerTripDepartureAirportCode, as sent.';
comment on column booking_details.consumer_trip_departure_airport_name is 'consumerTripDepartureAirportName, as sent.';
comment on column booking_details.consumer_trip_departure_flight_number is 'consumerTripDepartureFlightNumber, as sent.';
comment on column booking_details.consumer_trip_arrival_airport_name is 'consumerTripArrivalAirportName, as sent.';
comment on column booking_details.consumer_trip_arrival_flight_number is 'consumerTripArrivalFlightNumber, as sent.';
comment on column booking_details.consumer_trip_accommodation_name is 'consumerTripAccommodationName, as sent.';
comment on column booking_details.consumer_trip_accommodation_address is 'consumerTripAccommodationAddress, as sent.';
comment on column booking_details.consumer_trip_venue_name is 'consumerTripVenueName, as sent.';
comment on column booking_details.consumer_trip_venue_address is 'consumerTripVenueAddress, as sent.';
comment on column booking_details.consumer_trip_destination_name is 'consumerTripDestinationName, as sent.';
comment on column booking_details.consumer_trip_destination_country_name is 'consumerTripDestinationCountryName, as sent.';
comment on column booking_details.consumer_trip_destination_airport_code is 'consumerTripDestinationAirportCode, as sent.';
comment on column booking_details.consumer_trip_external_product_name is 'consumerTripExternalProductName, as sent.';
comment on column booking_details.consumer_trip_is_international is 'consumerTripIsInternational: true for true, t, yes, y and 1; false for false, f, no, n and 0; else null.';
comment on column booking_details.consumer_trip_is_regional is 'consumerTripIsRegional: true for true, t, yes, y and 1; false for false, f, no, n and 0; else null.';
comment on column booking_details.consumer_trip_is_local is 'consumerTripIsLocal: true for true, t, yes, y and 1; false for false, f, no, n and 0; else null.';
comment on column booking_details.consumer_trip_arrival_date is 'consumerTripArrivalDate: the calendar day as the partner wrote it.';
comment on column booking_details.consumer_trip_arrival_at is 'consumerTripArrivalDate: the moment. Null if a day was sent.';
comment on column booking_details.consumer_trip_return_date is 'consumerTripReturnDate: the calendar day as the partner wrote it.';
comment on column booking_details.consumer_trip_return_at is 'consumerTripReturnDate: the moment. Null if a day was sent.';
comment on column booking_details.agent_partner_external_reference is 'agentPartnerExternalReference, as sent.';
comment on column booking_details.agent_timezone is 'agentTimezone, as sent.';
comment on column booking_details.agent_phone_number is 'agentPhoneNumber in E.164, if it was sent in international form.';
comment on column booking_details.agent_given_name is 'agentGivenName, as sent.';
comment on column booking_details.agent_family_name is 'agentFamilyName, as sent.';
comment on column booking_details.agent_email is 'agentEmail, as sent.';
comment on column booking_details.consumer_language is 'consumerLanguage as a language tag in its canonical case, such as en-US.';
comment on column booking_details.consumer_trip_partner_external_reference is 'consumerTripPartnerExternalReference, as sent.';
comment on column booking_details.consumer_email is 'consumerEmail, as sent.';
comment on column booking_details.consumer_nationality is 'consumerNationality, as sent.';
comment on column booking_details.consumer_currency is 'consumerCurrency, as sent.';
comment on column booking_details.created_at is 'bookings.created_at.';
comment on column booking_details.updated_at is 'bookings.updated_at.';
comment on column booking_details.deleted_at is 'bookings.deleted_at.';
comment on column booking_details.reference_kind is 'bookings.reference_kind.';

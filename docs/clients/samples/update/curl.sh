curl "$BOOKING_EVENTS_URL/booking-event/update/$BOOKING_EVENTS_SECRET" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: TRIP-1/version-2' \
  -d '{"consumerTripPartnerExternalReference": "TRIP-1", "consumerGivenName": "Ada", "consumerTripArrivalDate": "2027-06-15"}'

curl "$BOOKING_EVENTS_URL/booking-event/delete/$BOOKING_EVENTS_SECRET" \
  -H 'Content-Type: application/json' \
  -H 'Idempotency-Key: TRIP-1/version-3' \
  -d '{"consumerTripPartnerExternalReference": "TRIP-1"}'

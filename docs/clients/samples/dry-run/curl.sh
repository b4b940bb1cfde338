curl "$BOOKING_EVENTS_URL/booking-event/create/$BOOKING_EVENTS_SECRET" \
  -H 'Content-Type: application/json' \
  -H 'X-Dry-Run: true' \
  -d '{"consumerTripPartnerExternalReference": "TRIP-1", "consumerPhone": "07911 123456"}'

printf '%s\n' \
  '{"kind": "create", "payload": {"consumerTripPartnerExternalReference": "TRIP-1"}, "idempotencyKey": "TRIP-1/version-1"}' \
  '{"kind": "create", "payload": {"consumerTripPartnerExternalReference": "TRIP-2"}, "idempotencyKey": "TRIP-2/version-1"}' |
  curl "$BOOKING_EVENTS_URL/booking-event/batch/$BOOKING_EVENTS_SECRET" \
    -H 'Content-Type: application/x-ndjson' --data-binary @-

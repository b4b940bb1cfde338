# One line for each booking that is active at your end, with its digest if you have it.
printf '%s\n' '{"reference": "TRIP-1"}' '{"reference": "C-7", "referenceKind": "consumer"}' |
  curl "${LOOKUP_URL:-$BOOKING_EVENTS_URL}/booking-event/reconcile/$BOOKING_EVENTS_SECRET" \
    -H 'Content-Type: application/x-ndjson' --data-binary @-

curl -G "${LOOKUP_URL:-$BOOKING_EVENTS_URL}/booking-event/booking/$BOOKING_EVENTS_SECRET" \
  --data-urlencode reference=TRIP-1

curl "${LOOKUP_URL:-$BOOKING_EVENTS_URL}/booking-event/activity/$BOOKING_EVENTS_SECRET"

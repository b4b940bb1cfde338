import os
from booking_events import BookingEvents

bookings = BookingEvents(os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"])

reference = {"consumerTripPartnerExternalReference": "TRIP-1"}
answer = bookings.delete(reference, idempotency_key="TRIP-1/version-3")
print(answer["eventId"])

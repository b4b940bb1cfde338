import datetime
import os
from booking_events import BookingEvents

bookings = BookingEvents(os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"])

# The whole booking: fields that you omit are removed.
booking = {
    "consumerTripPartnerExternalReference": "TRIP-1",
    "consumerGivenName": "Ada",
    "consumerTripArrivalDate": datetime.date(2027, 6, 15),
}
answer = bookings.update(booking, idempotency_key="TRIP-1/version-2")
print(answer["eventId"])

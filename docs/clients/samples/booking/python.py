import os
from booking_events import BookingEvents, digest

bookings = BookingEvents(
    os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"], lookup_url=os.environ.get("LOOKUP_URL")
)

sent = {
    "consumerTripPartnerExternalReference": "TRIP-1",
    "consumerGivenName": "Ada",
    "consumerTripArrivalDate": "2027-06-15",
}
booking = bookings.booking("TRIP-1") or {"state": "unknown"}
print(booking["state"], booking.get("digest") == digest(sent))

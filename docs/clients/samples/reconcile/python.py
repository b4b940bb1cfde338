import os
from booking_events import BookingEvents, digest

bookings = BookingEvents(
    os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"], lookup_url=os.environ.get("LOOKUP_URL")
)


def list_bookings():
    """All bookings that are active at your end, read from your database in pages."""
    payload = {"consumerTripPartnerExternalReference": "TRIP-1", "consumerGivenName": "Ada"}
    yield {"reference": "TRIP-1", "digest": digest(payload)}


for difference in bookings.reconcile(list_bookings()):
    print(difference["reference"], difference["result"])

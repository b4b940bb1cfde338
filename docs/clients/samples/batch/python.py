import os
from booking_events import BookingEvents

bookings = BookingEvents(os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"])


def list_events():
    """The events of many bookings, read from your database in pages."""
    for reference in ["TRIP-1", "TRIP-2"]:
        payload = {"consumerTripPartnerExternalReference": reference}
        yield {"kind": "create", "payload": payload, "idempotencyKey": f"{reference}/version-1"}


for answer in bookings.batch(list_events()):
    print(answer["status"], answer["idempotencyKey"])

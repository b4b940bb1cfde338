import os
from booking_events import BookingEvents

bookings = BookingEvents(
    os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"], lookup_url=os.environ.get("LOOKUP_URL")
)

# The eventId of the answer that you kept.
receipt = bookings.receipt("01a1fafe-d690-7608-9309-bff7f221cbc9")
print(receipt["status"] if receipt else "unknown")

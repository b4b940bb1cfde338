import json
import os
from booking_events import BookingEvents

bookings = BookingEvents(
    os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"], lookup_url=os.environ.get("LOOKUP_URL")
)

print(json.dumps(bookings.activity(), indent=2))

import os
from booking_events import BookingEvents

bookings = BookingEvents(
    os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"], lookup_url=os.environ.get("LOOKUP_URL")
)

activity = bookings.activity()
for found in activity["violations"] + activity["warnings"]:
    print(found["count"], found["field"], found["code"], found["advice"])

import os
from booking_events import BookingEvents

bookings = BookingEvents(os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"])

booking = {"consumerTripPartnerExternalReference": "TRIP-1", "consumerPhone": "07911 123456"}
answer = bookings.create(booking, dry_run=True)
for warning in answer.get("warnings", []):
    print(".".join(warning["propertyPath"]), warning["message"])

import datetime
import os
from booking_events import BookingEvents, BookingEventsError

bookings = BookingEvents(os.environ["BOOKING_EVENTS_URL"], os.environ["BOOKING_EVENTS_SECRET"])

booking = {
    "consumerTripPartnerExternalReference": "TRIP-1",
    "consumerGivenName": "Ada",
    "consumerTripArrivalDate": datetime.date(2027, 6, 14),
}
try:
    answer = bookings.create(booking, idempotency_key="TRIP-1/version-1")
    print(answer["eventId"], answer.get("warnings", []))
except BookingEventsError as error:
    if error.retryable:
        print("Send it again later with the key", error.idempotency_key)
    else:
        print(error.code, error, error.violations)

import { BookingEventsError, createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, secret });

const booking = {
  consumerTripPartnerExternalReference: "TRIP-1",
  consumerGivenName: "Ada",
  consumerTripArrivalDate: "2027-06-14",
};

try {
  const { eventId, warnings = [] } = await bookings.create(booking, { idempotencyKey: "TRIP-1/version-1" });
  console.log(eventId, warnings);
} catch (error) {
  if (!(error instanceof BookingEventsError)) throw error;
  if (error.retryable) console.error("Send it again later with the key", error.idempotencyKey);
  else console.error(error.code, error.message, error.violationList);
}

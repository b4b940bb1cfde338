import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, secret });

// The whole booking: fields that you omit are removed.
const booking = {
  consumerTripPartnerExternalReference: "TRIP-1",
  consumerGivenName: "Ada",
  consumerTripArrivalDate: "2027-06-15",
};
const { eventId } = await bookings.update(booking, { idempotencyKey: "TRIP-1/version-2" });
console.log(eventId);

import { createBookingEventsClient, digestOf } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", LOOKUP_URL: lookupUrl, BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, lookupUrl, secret });

const sent = {
  consumerTripPartnerExternalReference: "TRIP-1",
  consumerGivenName: "Ada",
  consumerTripArrivalDate: "2027-06-15",
};
const booking = await bookings.booking("TRIP-1");
const isCurrent = booking?.state === "active" && booking.digest === (await digestOf(sent));
console.log(booking?.state ?? "unknown", isCurrent);

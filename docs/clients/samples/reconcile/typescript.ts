import { createBookingEventsClient, digestOf } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", LOOKUP_URL: lookupUrl, BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, lookupUrl, secret });

// All bookings that are active at your end, read from your database in pages.
async function* listBookings() {
  const payload = { consumerTripPartnerExternalReference: "TRIP-1", consumerGivenName: "Ada" };
  yield { reference: "TRIP-1", digest: await digestOf(payload) };
}

for await (const { reference, result } of bookings.reconcile(listBookings())) console.log(reference, result);

import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, secret });

const reference = { consumerTripPartnerExternalReference: "TRIP-1" };
const { eventId } = await bookings.delete(reference, { idempotencyKey: "TRIP-1/version-3" });
console.log(eventId);

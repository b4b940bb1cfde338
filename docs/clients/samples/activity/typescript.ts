import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", LOOKUP_URL: lookupUrl, BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, lookupUrl, secret });

console.log(await bookings.activity());

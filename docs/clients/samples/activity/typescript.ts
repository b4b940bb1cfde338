import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", LOOKUP_URL: lookupUrl, BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, lookupUrl, secret });

const { violations, warnings } = await bookings.activity();
for (const { count, field, code, advice } of [...violations, ...warnings]) console.log(count, field, code, advice);

import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", LOOKUP_URL: lookupUrl, BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, lookupUrl, secret });

// The eventId of the answer that you kept.
const receipt = await bookings.receipt("01a1fafe-d690-7608-9309-bff7f221cbc9");
console.log(receipt?.status ?? "unknown");

import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, secret });

const booking = { consumerTripPartnerExternalReference: "TRIP-1", consumerPhone: "07911 123456" };
const { warnings = [] } = await bookings.create(booking, { dryRun: true });
for (const { propertyPath, message } of warnings) console.log(propertyPath.join("."), message);

import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, secret });

// The events of many bookings. An async generator may read your database while they are sent.
const answers = bookings.batch(
  ["TRIP-1", "TRIP-2"].map((reference) => ({
    kind: "create",
    payload: { consumerTripPartnerExternalReference: reference },
    idempotencyKey: `${reference}/version-1`,
  })),
);

for await (const { status, idempotencyKey } of answers) console.log(status, idempotencyKey);

import { createBookingEventsClient } from "./booking-events.js";

const { BOOKING_EVENTS_URL: baseUrl = "", BOOKING_EVENTS_SECRET: secret = "" } = process.env;
const bookings = createBookingEventsClient({ baseUrl, secret });

// The events of many bookings, read from your database in pages.
async function* listEvents() {
  for (const reference of ["TRIP-1", "TRIP-2"]) {
    const payload = { consumerTripPartnerExternalReference: reference };
    yield { kind: "create" as const, payload, idempotencyKey: `${reference}/version-1` };
  }
}

for await (const { status, idempotencyKey } of bookings.batch(listEvents())) console.log(status, idempotencyKey);

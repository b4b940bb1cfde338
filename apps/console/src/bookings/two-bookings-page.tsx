import type { VNode } from "preact";
import { Layout } from "../page/layout.tsx";
import { Text } from "../page/text.tsx";
import { type BookingRequest, bookingPath } from "./booking-request.ts";

/** A trip and a consumer of the partner have the same reference. */
export function TwoBookingsPage({ request }: { request: BookingRequest }): VNode {
  return (
    <Layout title={`Two bookings of ${request.partner}`}>
      <p>
        <Text value={request.reference} /> is the reference of a trip, and of a consumer. Which booking do you mean?
      </p>
      <p class="choices">
        <a class="button" href={bookingPath({ ...request, referenceKind: "trip" })}>
          The trip
        </a>
        <a class="button" href={bookingPath({ ...request, referenceKind: "consumer" })}>
          The consumer
        </a>
      </p>
    </Layout>
  );
}

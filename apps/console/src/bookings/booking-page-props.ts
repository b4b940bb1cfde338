import type { Proof } from "@booking-events/operations";
import type { View } from "../page/view.ts";
import type { BookingRequest } from "./booking-request.ts";

/** What the page of a booking and its larger parts show. */
export interface BookingPageProps {
  view: View;
  proof: Proof;
  request: BookingRequest;
  isRevealed: boolean;
}

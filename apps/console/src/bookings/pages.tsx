import {
  type Proof,
  proveBooking,
  revealBooking,
  revealReasons,
  TwoBookings,
  ticketPattern,
  UnknownBooking,
} from "@booking-events/operations";
import type { VNode } from "preact";
import type { PageRequest } from "../server/page-request.ts";
import type { Pages } from "../server/pages.ts";
import { Refusal } from "../server/refusal.ts";
import { BookingPage } from "./booking-page.tsx";
import { type BookingRequest, readBookingRequest } from "./booking-request.ts";
import { TwoBookingsPage } from "./two-bookings-page.tsx";

/** A reference that no path can hold, such as two full stops, stands in the query of the second. */
const bookingPaths = ["/bookings/:partner/:reference", "/bookings/:partner"];

const eventsShown = 50;

export function addBookingPages(pages: Pages): void {
  pages.show(bookingPaths, (page) => {
    const request = readBookingRequest(page);
    return present(request, proveBooking(page.operations, toOptions(request)), false);
  });
  pages.answer(bookingPaths, "privacy", async (page) => {
    const request = readBookingRequest(page);
    return present(request, reveal(page, request), true);
  });
}

function toOptions(request: BookingRequest) {
  return { ...request, limit: eventsShown };
}

function reveal({ operations, given }: PageRequest, request: BookingRequest): Promise<Proof> {
  const reason = revealReasons.find((known) => known === given("reason"));
  if (reason === undefined) throw new Refusal(400, "No reason", "Choose why you have to see the guest’s values.");
  const ticket = given("ticket");
  if (ticket !== undefined && !ticketPattern.test(ticket))
    throw new Refusal(
      400,
      "No ticket",
      "Name a ticket by letters, digits, #, /, _ and -. Write nothing of the guest’s.",
    );
  return revealBooking(operations, toOptions(request), { reason, ticket });
}

async function present(request: BookingRequest, finding: Promise<Proof>, isRevealed: boolean): Promise<VNode> {
  try {
    return <BookingPage proof={await finding} request={request} isRevealed={isRevealed} />;
  } catch (error) {
    if (error instanceof TwoBookings) return <TwoBookingsPage request={request} />;
    if (!(error instanceof UnknownBooking)) throw error;
    throw new Refusal(404, "No such booking", "The partner has no booking with this reference. Search for it above.");
  }
}

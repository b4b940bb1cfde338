import {
  type ActingContext,
  type Proof,
  proveBooking,
  revealBooking,
  revealReasons,
  TwoBookings,
  ticketPattern,
  UnknownBooking,
} from "@booking-events/operations";
import type Router from "@koa/router";
import type { ConsoleContext } from "../context.ts";
import { answering, type PageState, showing } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";
import { BookingPage } from "./booking-page.tsx";
import { type BookingRequest, readBookingRequest } from "./booking-request.ts";
import { TwoBookingsPage } from "./two-bookings-page.tsx";

/** A reference that no path can hold, such as two full stops, stands in the query of the second. */
const bookingPaths = ["/bookings/:partner/:reference", "/bookings/:partner"];

const eventsShown = 50;

export function addBookingRoutes(router: Router<PageState>, context: ConsoleContext): void {
  router.get(
    bookingPaths,
    showing(context, async (page) => {
      const request = readBookingRequest(page);
      const proof = await orExplain(proveBooking(page.operations, toOptions(request)));
      if (proof === "two") return <TwoBookingsPage view={page.view} request={request} />;
      return <BookingPage view={page.view} proof={proof} request={request} isRevealed={false} />;
    }),
  );
  router.post(
    bookingPaths,
    answering(context, { role: "privacy" }, async (page) => {
      const request = readBookingRequest(page);
      const proof = await orExplain(reveal(page.operations, request, page.form));
      if (proof === "two") return <TwoBookingsPage view={page.view} request={request} />;
      return <BookingPage view={page.view} proof={proof} request={request} isRevealed />;
    }),
  );
}

function toOptions(request: BookingRequest) {
  return { ...request, limit: eventsShown };
}

function reveal(operations: ActingContext, request: BookingRequest, form: URLSearchParams): Promise<Proof> {
  const reason = revealReasons.find((known) => known === form.get("reason"));
  if (reason === undefined) throw new Refusal(400, "No reason", "Choose why you have to see the guest’s values.");
  const ticket = form.get("ticket")?.trim() || undefined;
  if (ticket !== undefined && !ticketPattern.test(ticket))
    throw new Refusal(
      400,
      "No ticket",
      "Name a ticket by letters, digits, #, /, _ and -. Write nothing of the guest’s.",
    );
  return revealBooking(operations, toOptions(request), { reason, ticket });
}

/** @returns "two": a trip and a consumer have the reference */
async function orExplain(finding: Promise<Proof>): Promise<Proof | "two"> {
  try {
    return await finding;
  } catch (error) {
    if (error instanceof TwoBookings) return "two";
    if (!(error instanceof UnknownBooking)) throw error;
    throw new Refusal(404, "No such booking", "The partner has no booking with this reference. Search for it above.");
  }
}

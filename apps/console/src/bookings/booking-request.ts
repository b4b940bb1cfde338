import { isUuid, type PointInTime, type Proof } from "@booking-events/operations";
import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import { paths } from "../page/paths.tsx";
import { type PageRequest, toTime } from "../server/page-request.ts";

/** What a page of a booking is asked for. */
export interface BookingRequest {
  partner: string;
  reference: string;
  referenceKind: ReferenceKind | undefined;
  /** Of the URL: the id of an event, or a time. */
  at: string | undefined;
  point: PointInTime | undefined;
  before: string | undefined;
  isThorough: boolean;
}

/** What the page of a booking and its larger parts show. */
export interface BookingPageProps {
  proof: Proof;
  request: BookingRequest;
  isRevealed: boolean;
}

/** Of the path and the query, or of a form that repeats the query. A reference that no path can hold is in the query. */
export function readBookingRequest({ param, query, given, eventId, view }: PageRequest): BookingRequest {
  const at = given("at");
  return {
    partner: param("partner"),
    reference: param("reference") || (query.get("reference") ?? ""),
    referenceKind: referenceKinds.find((kind) => kind === given("kind")),
    at,
    point: at === undefined ? undefined : readPoint(at, view.now),
    before: eventId("before"),
    isThorough: given("all") === "yes",
  };
}

function readPoint(text: string, now: Date): PointInTime {
  return isUuid(text) ? { eventId: text.toLowerCase() } : { at: toTime(text, now) };
}

/**
 * Where the booking has its page, with what the request has chosen.
 *
 * @param chosen parameters that differ from the request's; an empty one is left out
 */
export function bookingPath(
  request: Pick<BookingRequest, "partner" | "reference" | "referenceKind"> & Partial<BookingRequest>,
  chosen: Record<string, string> = {},
): string {
  const [path, given] = paths.booking(request.partner, request.reference).split("?");
  const query = new URLSearchParams(given);
  const wanted = { kind: request.referenceKind, ...toFields(request), ...chosen };
  for (const [name, value] of Object.entries(wanted)) if (value) query.set(name, value);
  return query.size === 0 ? `${path}` : `${path}?${query}`;
}

/** What a form repeats of the request, besides the booking. */
export function toFields({ at, before, isThorough }: Partial<BookingRequest>): Record<string, string> {
  return { ...(at && { at }), ...(before && { before }), ...(isThorough && { all: "yes" }) };
}

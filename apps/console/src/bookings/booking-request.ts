import { isUuid, type PointInTime, parsePast } from "@booking-events/operations";
import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import type { PageRequest } from "../server/page-routes.ts";
import { Refusal } from "../server/refusal.ts";

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

/** Of the path and the query, or of a form that repeats the query. A reference that no path can hold is in the query. */
export function readBookingRequest({ params, query, form, view }: PageRequest): BookingRequest {
  const given = (name: string) => (form.get(name) ?? query.get(name) ?? "").trim() || undefined;
  const at = given("at");
  return {
    partner: params["partner"] ?? "",
    reference: params["reference"] ?? query.get("reference") ?? "",
    referenceKind: referenceKinds.find((kind) => kind === given("kind")),
    at,
    point: at === undefined ? undefined : readPoint(at, view.now),
    before: readBefore(given("before")),
    isThorough: given("all") === "yes",
  };
}

function readPoint(text: string, now: Date): PointInTime {
  if (isUuid(text)) return { eventId: text.toLowerCase() };
  const at = parsePast(text, now);
  if (at !== undefined) return { at };
  throw new Refusal(400, "No such time", "Give a time such as 2026-11-20T14:00:00Z, 02:00 (in UTC) or 2h (ago).");
}

function readBefore(text: string | undefined): string | undefined {
  if (text === undefined || isUuid(text)) return text?.toLowerCase();
  throw new Refusal(400, "No such page", "The page begins with an event that has no valid id. Open the booking again.");
}

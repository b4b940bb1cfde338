import { paths } from "../page/paths.ts";
import type { BookingRequest } from "./booking-request.ts";

/**
 * Where the booking has its page, with what the request has chosen.
 *
 * @param chosen parameters that differ from the request's; an empty one is left out
 */
export function bookingPath(
  request: Pick<BookingRequest, "partner" | "reference" | "referenceKind"> & Partial<BookingRequest>,
  chosen: Record<string, string> = {},
): string {
  const { partner, reference, referenceKind, at, before, isThorough } = request;
  const path = paths.booking(partner, reference);
  const query = new URLSearchParams(path.split("?")[1]);
  const wanted = { kind: referenceKind, at, before, all: isThorough ? "yes" : undefined, ...chosen };
  for (const [name, value] of Object.entries(wanted)) if (value) query.set(name, value);
  return query.size === 0 ? path : `${path.split("?")[0]}?${query}`;
}

import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import { bookingKey } from "@booking-events/store";
import { Option } from "commander";

export function referenceKindOption(): Option {
  return new Option(
    "--reference-kind <kind>",
    "the booking that has this reference of a trip, or of a consumer: they are two, even where the text is the same",
  ).choices(referenceKinds);
}

/** @param kind undefined: of a trip and of a consumer */
export function keysOf(partner: string, reference: string, kind: ReferenceKind | undefined): Buffer[] {
  return (kind === undefined ? referenceKinds : [kind]).map((any) => bookingKey(partner, any, reference));
}

/** TRIP-1; or, of a booking without a trip reference: of consumer C-1 */
export function describeReference(kind: ReferenceKind, reference: string): string {
  return kind === "trip" ? reference : `of consumer ${reference}`;
}

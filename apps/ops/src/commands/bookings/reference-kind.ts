import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import { bookingKey } from "@booking-events/store";
import { Option } from "@commander-js/extra-typings";

export function referenceKindOption() {
  return new Option(
    "--reference-kind <kind>",
    "the kind of the reference, if a trip and a consumer have the same one",
  ).choices(referenceKinds);
}

/** @param kind undefined: the keys of both kinds */
export function keysOf(partner: string, reference: string, kind: ReferenceKind | undefined): Buffer[] {
  return (kind === undefined ? referenceKinds : [kind]).map((any) => bookingKey(partner, any, reference));
}

/** For example: TRIP-1, or: of consumer C-1 */
export function describeReference(kind: ReferenceKind, reference: string): string {
  return kind === "trip" ? reference : `of consumer ${reference}`;
}

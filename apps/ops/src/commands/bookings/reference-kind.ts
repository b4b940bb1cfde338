import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import { Option } from "@commander-js/extra-typings";

export function referenceKindOption() {
  return new Option(
    "--reference-kind <kind>",
    "the kind of the reference, if a trip and a consumer have the same one",
  ).choices(referenceKinds);
}

/** For example: TRIP-1, or: of consumer C-1 */
export function describeReference(kind: ReferenceKind, reference: string): string {
  return kind === "trip" ? reference : `of consumer ${reference}`;
}

import { type ReferenceKind, referenceKinds } from "@booking-events/schema";
import { Option } from "@commander-js/extra-typings";

export function referenceKindOption() {
  return new Option(
    "--reference-kind <kind>",
    "the kind of the reference, if a trip and a consumer have the same one",
  ).choices(referenceKinds);
}

interface Named {
  reference: string | null;
  referenceKind: ReferenceKind | null;
}

/** Most references are a trip's, so only a consumer's is marked: C-1 (the consumer's) */
export function describeReference({ reference, referenceKind }: Named): string {
  if (reference === null) return "?";
  return referenceKind === "consumer" ? `${reference} (the consumer's)` : reference;
}

/** For tables. */
export const referenceColumn = { header: "REFERENCE", value: describeReference };

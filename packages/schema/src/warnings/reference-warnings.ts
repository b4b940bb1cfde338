import type { EventKind } from "../payload/event-kind.ts";
import { findReference } from "../payload/reference-rule.ts";
import type { FieldWarning } from "./warning.ts";

/** Warns of a reference that identifies the booking, but less well than another one would. */
export function warnOfReference(kind: EventKind, payload: object): FieldWarning[] {
  const found = findReference(payload);
  if (found === undefined) return [];
  const warnings: FieldWarning[] = [];
  if (found.kind === "consumer" && kind !== "delete") warnings.push(noTripReference);
  if (found.sent !== found.reference) {
    const { name } = found;
    warnings.push({ message: untidy, code: "untidy-reference", propertyPath: [name], field: name });
  }
  return warnings;
}

const noTripReference: FieldWarning = {
  message:
    "Without it, the consumer identifies the booking, and the consumer's next booking overwrites this one. Send your " +
    "reference for the trip or booking.",
  code: "no-trip-reference",
  propertyPath: ["consumerTripPartnerExternalReference"],
  field: "consumerTripPartnerExternalReference",
};

const untidy =
  "The reference was compared without its invisible characters and the white space around it, and in Unicode's form " +
  "NFC. Send it in that form.";

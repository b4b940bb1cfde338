import * as v from "valibot";
import { cleanReference } from "./clean-reference.ts";
import { describeTextViolation, maxTextLength } from "./field-types.ts";
import { describeSeenInstead } from "./seen-instead.ts";
import { isStorableText, unstorableTextMessage } from "./storable-text.ts";
import type { Violation } from "./violation.ts";
import { codeOfField } from "./violation-code.ts";

export const referenceKinds = ["trip", "consumer"] as const;
/** Trip and consumer references are separate namespaces: the same text names two different bookings. */
export type ReferenceKind = (typeof referenceKinds)[number];

/** By preference: the first one that is sent, and not as an empty text, identifies the booking. */
const referenceFields = [
  { name: "consumerTripPartnerExternalReference", kind: "trip", maxLength: 255 },
  { name: "consumerPartnerExternalReference", kind: "consumer", maxLength: maxTextLength },
] as const;

export interface SentReference {
  name: (typeof referenceFields)[number]["name"];
  kind: ReferenceKind;
  /** In code points, after cleaning. */
  maxLength: number;
  sent: unknown;
  /** As it is compared. Empty if what was sent is no text. */
  reference: string;
}

/**
 * Returns the reference that identifies the payload's booking, valid or not. A trip reference that is no text counts:
 * falling back to the consumer's would change another booking.
 */
export function findReference(payload: object): SentReference | undefined {
  for (const field of referenceFields) {
    if (!Object.prototype.propertyIsEnumerable.call(payload, field.name)) continue;
    const sent: unknown = (payload as Record<string, unknown>)[field.name];
    if (sent === undefined) continue;
    const reference = typeof sent === "string" ? cleanReference(sent) : "";
    if (typeof sent !== "string" || reference !== "") return { ...field, sent, reference };
  }
  return undefined;
}

/** Returns why the payload does not identify a booking, whatever other rules this release has, or null if it does. */
export function findReferenceViolation(payload: object): Violation | null {
  const found = findReference(payload);
  if (found === undefined) return missingReference();
  return typeof found.sent === "string" ? null : violate(found, "string");
}

/** Returns what is wrong with the reference that identifies the booking, or null if it keeps the rules for partners. */
export function checkReference(payload: object, found = findReference(payload)): Violation | null {
  if (found === undefined) return missingReference(describeEmpty(payload) ?? describeSeenInstead(payload));
  const { name, sent, reference, maxLength } = found;
  if (typeof sent !== "string") return violate(found, "string");
  if (!isStorableText(sent)) return { message: unstorableTextMessage, code: "unstorable", propertyPath: [name] };
  return hasAtMost(maxLength, reference) && hasAtMost(maxTextLength, sent) ? null : violate(found, "max_code_points");
}

/** {@link checkReference} as a step of a valibot pipe. A violation of the field's own rule is not reported twice. */
export function requireReference<Payload extends object>() {
  return v.rawCheck<Payload>(({ dataset, addIssue }) => {
    const payload: unknown = dataset.value;
    if (typeof payload !== "object" || payload === null) return;
    const violation = checkReference(payload);
    const [key] = violation?.propertyPath ?? [];
    if (violation === null || dataset.issues?.some(({ path }) => path?.[0].key === key)) return;
    addIssue({
      message: violation.message,
      path: [{ type: "unknown", origin: "key", input: payload, key, value: undefined }],
    });
  });
}

/** @param seen what the payload has instead, for the sender */
function missingReference(seen?: string): Violation {
  const message =
    "Must be present, because it identifies the booking. If your consumers never have more than one booking, " +
    "you can send consumerPartnerExternalReference instead.";
  return {
    message: seen === undefined ? message : `${message} ${seen}`,
    code: "missing",
    propertyPath: [referenceFields[0].name],
  };
}

function describeEmpty(payload: object): string | undefined {
  const empty = referenceFields.find(({ name }) => Object.prototype.propertyIsEnumerable.call(payload, name));
  return empty && `There is ${empty.name}, but it is empty.`;
}

/** @param type as valibot names the rule that the reference violates */
function violate({ name, sent, maxLength }: SentReference, type: "string" | "max_code_points"): Violation {
  const message = describeTextViolation(maxLength)({ input: sent, type });
  return { message, code: codeOfField(sent, [{ type }]), propertyPath: [name] };
}

/** There are never more code points than UTF-16 code units. */
function hasAtMost(maxCodePoints: number, text: string): boolean {
  return text.length <= maxCodePoints || Array.from(text).length <= maxCodePoints;
}

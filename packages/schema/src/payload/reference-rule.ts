import * as v from "valibot";
import type { Violation } from "./violation.ts";
import { codeOfField } from "./violation-code.ts";

/** The fields that identify the booking. The first one that is present counts. */
const namesByPreference = ["consumerTripPartnerExternalReference", "consumerPartnerExternalReference"] as const;

const missingReferenceMessage =
  "Must be present, because it identifies the booking. If your consumers never have more than one booking, " +
  "you can send consumerPartnerExternalReference instead.";

export function missingReference(): Violation {
  return { message: missingReferenceMessage, code: "missing", propertyPath: [namesByPreference[0]] };
}

/**
 * Returns whether the payload has a reference, valid or not. An invalid reference violates the rule of its own field,
 * and is not reported as missing too.
 */
export function hasReference(payload: object): boolean {
  return namesByPreference.some((name) => Object.prototype.propertyIsEnumerable.call(payload, name));
}

/**
 * {@link hasReference} as a step of a valibot pipe. It is a raw check because valibot skips other checks when a field
 * has the wrong type.
 */
export function requireReference<Payload extends object>() {
  return v.rawCheck<Payload>(({ dataset, addIssue }) => {
    const payload: unknown = dataset.value;
    if (typeof payload !== "object" || payload === null || hasReference(payload)) return;
    addIssue({
      message: missingReferenceMessage,
      path: [{ type: "unknown", origin: "key", input: payload, key: namesByPreference[0], value: undefined }],
    });
  });
}

/** Returns why the payload does not identify a booking, ignoring all other rules for references, or null if it does. */
export function findReferenceViolation(payload: object): Violation | null {
  const name = namesByPreference.find((each) => Object.prototype.propertyIsEnumerable.call(payload, each));
  if (name === undefined) return missingReference();
  const reference = (payload as Record<string, unknown>)[name];
  if (typeof reference === "string" && reference !== "") return null;
  return { message: "Must be a non-empty string.", code: codeOfField(reference, []), propertyPath: [name] };
}

import * as v from "valibot";
import type { Violation } from "./violation.ts";

/** The fields that say which booking is meant. The first one that is present does. */
const namesByPreference = ["consumerTripPartnerExternalReference", "consumerPartnerExternalReference"] as const;

const missingReferenceMessage =
  "Must be sent, since it says which booking is meant. If your consumers never have more than one booking, consumerPartnerExternalReference will do instead.";

export function missingReference(): Violation {
  return { message: missingReferenceMessage, propertyPath: [namesByPreference[0]] };
}

/**
 * A payload must say which booking it means. One that says it wrongly breaks the rule of the field that it used, and
 * not this one as well.
 */
export function hasReference(payload: object): boolean {
  return namesByPreference.some((name) => Object.prototype.propertyIsEnumerable.call(payload, name));
}

/** The same as a step of a valibot pipe: a raw check, since others run only when no field has a wrong type. */
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

/** What keeps a payload from saying which booking it means, whatever else is asked of references; null: nothing. */
export function findWrongReference(payload: object): Violation | null {
  const name = namesByPreference.find((each) => Object.prototype.propertyIsEnumerable.call(payload, each));
  if (name === undefined) return missingReference();
  const reference = (payload as Record<string, unknown>)[name];
  if (typeof reference === "string" && reference !== "") return null;
  return { message: "Must be a string that is not empty.", propertyPath: [name] };
}

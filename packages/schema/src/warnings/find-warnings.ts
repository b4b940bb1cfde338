import type { NormaliseOptions } from "../normalise/normalise-booking.ts";
import { type BookingFieldName, BookingInput, bookingFields } from "../payload/booking-input.ts";
import { BookingReference } from "../payload/booking-reference.ts";
import type { EventKind } from "../payload/event-kind.ts";
import type { BookingPayload } from "../payload/validate-payload.ts";
import { createSimilarNameFinder } from "./similar-name.ts";
import { valueWarnings, type WarnOfValue } from "./value-warnings.ts";
import { type FieldWarning, maxWarnings } from "./warning.ts";

/** In a payload. Further unlisted names are not compared with listed ones. */
const maxComparedNames = 50;

interface WarningRules {
  /** The names with rules of their own. Null: any value that the contract allows is fine. */
  knownNames: ReadonlyMap<string, WarnOfValue | null>;
  findSimilarName: (name: string) => BookingFieldName | undefined;
}

const listedNames = bookingFields.map(({ name }) => name);
const bookingRules: WarningRules = {
  knownNames: new Map([...Object.keys(BookingInput.entries).map((name) => [name, null] as const), ...valueWarnings]),
  findSimilarName: createSimilarNameFinder(listedNames),
};
const rulesByKind = {
  create: bookingRules,
  update: bookingRules,
  // Nothing but the references of a delete is applied.
  delete: {
    knownNames: new Map(listedNames.map((name) => [name, null])),
    findSimilarName: createSimilarNameFinder(listedNames.filter((name) => name in BookingReference.entries)),
  },
} satisfies Record<EventKind, WarningRules>;

/**
 * Finds likely mistakes in a valid payload: unlisted names that resemble a listed one, and values that
 * `normaliseBooking` cannot read, or not wholly. Never throws.
 *
 * @param payload a payload that `validatePayload` has accepted
 * @returns up to `maxWarnings`, in the order of the payload's keys
 */
export function findWarnings(
  kind: EventKind,
  payload: BookingPayload,
  options: NormaliseOptions = { defaultCountry: null },
): FieldWarning[] {
  const { knownNames, findSimilarName }: WarningRules = rulesByKind[kind];
  const warnings: FieldWarning[] = [];
  let comparedNames = 0;
  for (const name in payload) {
    const value = payload[name];
    const warnOfValue = knownNames.get(name);
    if (warnOfValue === null) continue;
    if (warnOfValue !== undefined) {
      const warning = warnOfValue(value, payload, options);
      if (warning !== undefined) warnings.push(warning);
    } else if (comparedNames < maxComparedNames) {
      comparedNames += 1;
      const field = findSimilarName(name);
      if (field !== undefined) warnings.push(warnOfName(name, field));
    }
    if (warnings.length === maxWarnings) break;
  }
  return warnings;
}

function warnOfName(name: string, field: BookingFieldName): FieldWarning {
  const message = `The contract does not list this field. If you mean ${field}, correct the name.`;
  return { message, code: "similar-name", propertyPath: [name], field };
}

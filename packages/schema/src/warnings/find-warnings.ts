import type { NormaliseOptions } from "../normalise/normalise-booking.ts";
import { type BookingFieldName, bookingFields } from "../payload/booking-input.ts";
import { BookingReference } from "../payload/booking-reference.ts";
import type { EventKind } from "../payload/event-kind.ts";
import { isBlank } from "../payload/is-blank.ts";
import { shortenName } from "../payload/property-path.ts";
import { separatorInHtml } from "../payload/seen-instead.ts";
import type { BookingPayload } from "../payload/validate-payload.ts";
import { limitWarnings } from "./limit-warnings.ts";
import { namesByMeaning } from "./names-by-meaning.ts";
import { warnOfReference } from "./reference-warnings.ts";
import { retiredNameWarnings } from "./retired-names.ts";
import { createSimilarNameFinder, type SimilarName } from "./similar-name.ts";
import { valueWarnings, type WarnOfValue } from "./value-warnings.ts";
import type { FieldWarning } from "./warning.ts";

/** In a payload. Further unlisted names are not compared with listed ones. */
const maxComparedNames = 50;

interface WarningRules {
  /** The names with rules of their own. Null: any value that the contract allows is fine. */
  knownNames: ReadonlyMap<string, WarnOfValue | null>;
  findSimilarName: (name: string) => SimilarName<BookingFieldName> | undefined;
}

const listedNames = bookingFields.map(({ name }) => name);
const bookingRules: WarningRules = {
  knownNames: new Map<string, WarnOfValue | null>([
    ...listedNames.map((name) => [name, null] as const),
    ...valueWarnings,
    ...retiredNameWarnings,
  ]),
  findSimilarName: createSimilarNameFinder(listedNames, namesByMeaning),
};
const rulesByKind = {
  create: bookingRules,
  update: bookingRules,
  // Nothing but the references of a delete is applied.
  delete: {
    knownNames: new Map([...listedNames, ...retiredNameWarnings.keys()].map((name) => [name, null])),
    findSimilarName: createSimilarNameFinder(
      listedNames.filter((name) => name in BookingReference.entries),
      namesByMeaning,
    ),
  },
} satisfies Record<EventKind, WarningRules>;

/**
 * Finds likely mistakes in a valid payload: doubtful references, retired names, unlisted names that resemble a listed
 * one, and values that `normaliseBooking` cannot read, or not wholly. Never throws.
 *
 * @param payload a payload that `validatePayload` has accepted
 * @returns up to `maxWarnings`: of the reference, and then in the order of the payload's keys. If there are more, those
 *   of listed fields come first
 */
export function findWarnings(
  kind: EventKind,
  payload: BookingPayload,
  options: NormaliseOptions = { defaultCountry: null },
): FieldWarning[] {
  const { knownNames, findSimilarName }: WarningRules = rulesByKind[kind];
  const warnings = warnOfReference(kind, payload);
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
      const warning = warnOfUnlisted(payload, name, findSimilarName);
      if (warning !== undefined) warnings.push(warning);
    }
  }
  return limitWarnings(warnings);
}

function warnOfUnlisted(
  payload: BookingPayload,
  name: string,
  findSimilarName: WarningRules["findSimilarName"],
): FieldWarning | undefined {
  if (name.startsWith(separatorInHtml)) {
    return warnOfSeparator(name, findSimilarName(name.slice(separatorInHtml.length))?.listed);
  }
  const similar = findSimilarName(name);
  if (similar === undefined) return undefined;
  const isMeant = similar.isSpelledAlike || isInPlaceOf(payload, similar.listed, payload[name]);
  return isMeant ? warnOfName(name, similar.listed) : undefined;
}

function warnOfSeparator(name: string, field: BookingFieldName | undefined): FieldWarning {
  const message = "The form was joined by &amp;, so this field has another name than you mean. Join fields by & alone.";
  return { message, code: "similar-name", propertyPath: [shortenName(name)], field: field ?? "" };
}

/**
 * Whether a field with a name of its own may be sent in place of a listed one. A partner that sends the listed one, too,
 * knows the contract, and an object has fields of its own.
 */
function isInPlaceOf(payload: BookingPayload, listed: BookingFieldName, value: unknown): boolean {
  return isValue(value) && !isValue((payload as Record<string, unknown>)[listed]);
}

function isValue(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && !isBlank(value));
}

function warnOfName(name: string, field: BookingFieldName): FieldWarning {
  const message = `The contract does not list this field. If you mean ${field}, correct the name.`;
  return { message, code: "similar-name", propertyPath: [name], field };
}

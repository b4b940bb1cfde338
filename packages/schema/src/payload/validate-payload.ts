import * as v from "valibot";
import { type BookingField, BookingInput, bookingFields } from "./booking-input.ts";
import { BookingReference } from "./booking-reference.ts";
import { countJsonValues, maxJsonValues, tooManyValues } from "./count-json-values.ts";
import { datePattern } from "./date-pattern.ts";
import type { EventKind } from "./event-kind.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { hasReference, missingReference } from "./reference-rule.ts";
import { isStorableText } from "./storable-text.ts";
import { checkUnknownFields } from "./unknown-fields.ts";
import { maxViolations, type Violation } from "./violation.ts";
import { codeOfField } from "./violation-code.ts";

export type BookingPayload = BookingInput | BookingReference;

export type PayloadValidation =
  | { success: true; payload: BookingPayload }
  | { success: false; violationList: Violation[] };

interface FieldRule {
  schema: v.GenericSchema;
  /**
   * Returns true only for text that satisfies the schema if a database can store it. Nearly all values are such text,
   * and valibot's check takes several times as long.
   */
  isOrdinary: (text: string) => boolean;
}

function toRules(entries: Record<string, v.GenericSchema>): ReadonlyMap<string, FieldRule> {
  const fields = new Map<string, BookingField>(bookingFields.map((field) => [field.name, field]));
  return new Map(
    Object.entries(entries).map(([name, schema]) => [name, { schema, isOrdinary: ordinaryTextOf(fields.get(name)) }]),
  );
}

/** @param field undefined for a retired name, which must not be sent at all */
function ordinaryTextOf(field: BookingField | undefined): FieldRule["isOrdinary"] {
  switch (field?.type) {
    case undefined:
      return () => false;
    case "date":
      return (text) => datePattern.test(text);
    case "email":
      return (text) => text.length <= shortestMaxLength && v.RFC_EMAIL_REGEX.test(text);
    default:
      return isOrdinaryText;
  }
}

/** In code points, which are never more than UTF-16 code units. */
const shortestMaxLength = Math.min(
  ...bookingFields.filter(({ type }) => type !== "date").map((field) => field.maxLength),
);

function isOrdinaryText(text: string): boolean {
  return text.length <= shortestMaxLength && !isBlank(text);
}

/** Returns whether the text is empty or only white space. Nearly always, its first character tells. */
function isBlank(text: string): boolean {
  const first = text.charCodeAt(0);
  const isPrintableAscii = first > 0x20 && first < 0x7f;
  return !isPrintableAscii && text.trim() === "";
}

const bookingRules = toRules(BookingInput.entries);
const rulesByKind = {
  create: bookingRules,
  update: bookingRules,
  delete: toRules(BookingReference.entries),
} satisfies Record<EventKind, unknown>;

/** Set explicitly so an application's global valibot configuration cannot hide violations. */
export const everyIssue = { abortEarly: false, abortPipeEarly: false };

/**
 * Checks a payload against the contract. Never throws.
 *
 * @param value the parsed payload. NaN stands for a number that the parser had to round
 * @returns the value itself, unchanged and including unknown fields; or all violations, up to `maxViolations`. Listed
 *   fields come first, in the order of `bookingFields` and with at most one violation each. Then come retired names,
 *   and then unknown fields in the order of the object's keys, each before its members. If there are more than
 *   `maxJsonValues`, that is the only violation
 * @param options.hasStorableTexts whether it is known that no text in the value contains U+0000 or an unpaired surrogate.
 *   JSON from well-formed UTF-8 can express neither without the escape `\u`
 */
export function validatePayload(
  kind: EventKind,
  value: unknown,
  { hasStorableTexts = false }: { hasStorableTexts?: boolean } = {},
): PayloadValidation {
  if (!isPlainObject(value)) return { success: false, violationList: [notAnObject] };
  const rules = rulesByKind[kind];
  const { violations, hasUnknownFields } = checkListedFields(value, rules, hasStorableTexts);
  if (hasUnknownFields) violations.push(...checkUnknownFields(value, rules));
  // Unlisted fields have been counted by their check, and a listed field with more than one value violates its own
  // rule.
  if (violations.length === 0) return { success: true, payload: asPayload(value) };
  if (countJsonValues(value) > maxJsonValues) return { success: false, violationList: [tooManyValues] };
  return { success: false, violationList: violations.slice(0, maxViolations) };
}

const notAnObject: Violation = {
  message: "Must be an object with the booking's fields.",
  code: "not-an-object",
  propertyPath: [],
};

/** The cast is safe because both checks of `validatePayload` have passed. */
function asPayload(value: PlainObject): BookingPayload {
  return value as BookingPayload;
}

/**
 * Checks field by field because valibot would copy the object, which is a third of the work, and nobody needs the copy.
 *
 * @returns violations in the contract's order, and whether there are fields without a rule
 */
function checkListedFields(
  payload: PlainObject,
  rules: ReadonlyMap<string, FieldRule>,
  hasStorableTexts: boolean,
): { violations: Violation[]; hasUnknownFields: boolean } {
  const violations = hasReference(payload) ? [] : [missingReference()];
  let hasUnknownFields = false;
  // Partners' payloads have many shapes. V8 reads a property fast by a name that it has just enumerated.
  for (const name in payload) {
    const value = payload[name];
    const rule = rules.get(name);
    if (rule === undefined) {
      hasUnknownFields = true;
      continue;
    }
    if (typeof value === "string" && rule.isOrdinary(value) && (hasStorableTexts || isStorableText(value))) continue;
    const { issues } = v.safeParse(rule.schema, value, everyIssue);
    // The field may violate several rules of its type, but each message states all of them, so the first one is enough.
    if (issues !== undefined)
      violations.push({ message: issues[0].message, code: codeOfField(value, issues), propertyPath: [name] });
  }
  violations.sort((one, other) => positionOf(one) - positionOf(other));
  return { violations, hasUnknownFields };
}

const contractOrder = [...bookingRules.keys()];

function positionOf({ propertyPath: [name = ""] }: Violation): number {
  return contractOrder.indexOf(name);
}

import * as v from "valibot";
import { BookingInput, bookingFields } from "./booking-input.ts";
import { BookingReference } from "./booking-reference.ts";
import { countJsonValues, maxJsonValues, tooManyValues } from "./count-json-values.ts";
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

/** The listed fields whose value may be any text. */
const textNames = new Set<string>(
  bookingFields.filter(({ type }) => type !== "date" && type !== "email").map(({ name }) => name),
);

interface FieldRule {
  schema: v.GenericSchema;
  mayBeAnyText: boolean;
}

function toRules(entries: Record<string, v.GenericSchema>): ReadonlyMap<string, FieldRule> {
  return new Map(
    Object.entries(entries).map(([name, schema]) => [name, { schema, mayBeAnyText: textNames.has(name) }]),
  );
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
 */
export function validatePayload(kind: EventKind, value: unknown): PayloadValidation {
  if (!isPlainObject(value)) return { success: false, violationList: [notAnObject] };
  const rules = rulesByKind[kind];
  const { violations, hasUnknownFields } = checkListedFields(value, rules);
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
): { violations: Violation[]; hasUnknownFields: boolean } {
  const violations = hasReference(payload) ? [] : [missingReference()];
  let hasUnknownFields = false;
  // Partners' payloads have many shapes, so reading a property by its name is slow here.
  const values = Object.values(payload);
  for (const [index, name] of Object.keys(payload).entries()) {
    const rule = rules.get(name);
    const value = values[index];
    if (rule === undefined) {
      hasUnknownFields = true;
      continue;
    }
    if (rule.mayBeAnyText && isOrdinaryText(value)) continue;
    const { issues } = v.safeParse(rule.schema, value, everyIssue);
    // The field may violate several rules of its type, but each message states all of them, so the first one is enough.
    if (issues !== undefined)
      violations.push({ message: issues[0].message, code: codeOfField(value, issues), propertyPath: [name] });
  }
  violations.sort((one, other) => positionOf(one) - positionOf(other));
  return { violations, hasUnknownFields };
}

const shortestMaxLength = Math.min(...bookingFields.filter(({ name }) => textNames.has(name)).map((f) => f.maxLength));

/**
 * Returns true only for text that satisfies the rule of every field in `textNames`. Most values are such text, and
 * valibot's check takes several times as long.
 */
function isOrdinaryText(value: unknown): boolean {
  return typeof value === "string" && value.length <= shortestMaxLength && !isBlank(value) && isStorableText(value);
}

/** Returns whether the text is empty or only white space. Nearly always, its first character tells. */
function isBlank(text: string): boolean {
  const first = text.charCodeAt(0);
  const isPrintableAscii = first > 0x20 && first < 0x7f;
  return !isPrintableAscii && text.trim() === "";
}

const contractOrder = [...bookingRules.keys()];

function positionOf({ propertyPath: [name = ""] }: Violation): number {
  return contractOrder.indexOf(name);
}

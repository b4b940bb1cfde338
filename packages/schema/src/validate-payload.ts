import * as v from "valibot";
import { BookingInput } from "./booking-input.ts";
import { BookingReference } from "./booking-reference.ts";
import { countJsonValues, maxJsonValues, tooManyValues } from "./count-json-values.ts";
import type { EventKind } from "./event-kind.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { hasReference, missingReference } from "./reference-rule.ts";
import { checkUnknownFields } from "./unknown-fields.ts";
import { maxViolations, type Violation } from "./violation.ts";

export type BookingPayload = BookingInput | BookingReference;

export type PayloadValidation =
  | { success: true; payload: BookingPayload }
  | { success: false; violationList: Violation[] };

const bookingRules = new Map(Object.entries(BookingInput.entries));
const rulesByKind = {
  create: bookingRules,
  update: bookingRules,
  delete: new Map(Object.entries(BookingReference.entries)),
} satisfies Record<EventKind, unknown>;

/** Set here, so that an application's own valibot configuration can't hide a violation. */
export const everyIssue = { abortEarly: false, abortPipeEarly: false };

/**
 * Checks a payload against the contract. Never throws, whatever the value.
 *
 * @param value what was sent, already parsed. NaN stands for a number that the parser had to round
 * @returns the value itself, unchanged, unknown fields included. Or every violation, up to `maxViolations`: first of
 *   listed fields in the order of `bookingFields`, at most one each; then of retired names; then of unknown fields in
 *   the order of the object's keys, each before what is inside it. Of a payload with more than `maxJsonValues`, that only
 */
export function validatePayload(kind: EventKind, value: unknown): PayloadValidation {
  if (!isPlainObject(value)) return { success: false, violationList: [notAnObject] };
  const rules = rulesByKind[kind];
  const violations = [...checkListedFields(value, rules), ...checkUnknownFields(value, rules)];
  // What is not listed was counted on the way, and a listed field that holds more than one value breaks its own rule.
  if (violations.length === 0) return { success: true, payload: asPayload(value) };
  if (countJsonValues(value) > maxJsonValues) return { success: false, violationList: [tooManyValues] };
  return { success: false, violationList: violations.slice(0, maxViolations) };
}

const notAnObject: Violation = { message: "Must be an object with the booking's fields.", propertyPath: [] };

/** Both steps of `validatePayload` have passed: the value is what `BookingInput` or `BookingReference` describe. */
function asPayload(value: PlainObject): BookingPayload {
  return value as BookingPayload;
}

/**
 * Field by field: to check an object, valibot copies it, which is a third of the work, and nobody needs the copy. What
 * was sent is kept as it is.
 */
function checkListedFields(payload: PlainObject, rules: ReadonlyMap<string, v.GenericSchema>): Violation[] {
  const violations = hasReference(payload) ? [] : [missingReference()];
  for (const name of Object.keys(payload)) {
    const rule = rules.get(name);
    if (rule === undefined) continue;
    const { issues } = v.safeParse(rule, payload[name], everyIssue);
    // It may break several rules of its type, but its message says them all: the first one stands for the field.
    if (issues !== undefined) violations.push({ message: issues[0].message, propertyPath: [name] });
  }
  return violations.sort((one, other) => positionOf(one) - positionOf(other));
}

const contractOrder = [...bookingRules.keys()];

function positionOf({ propertyPath: [name = ""] }: Violation): number {
  return contractOrder.indexOf(name);
}

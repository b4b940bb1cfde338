import * as v from "valibot";
import {
  type BookingField,
  type BookingInput,
  bookingEntries,
  bookingFields,
  namesWithRules,
} from "./booking-input.ts";
import { type BookingReference, namesWithRulesInDelete } from "./booking-reference.ts";
import { countJsonValues, maxJsonValues, tooManyValues } from "./count-json-values.ts";
import { datePattern } from "./date-pattern.ts";
import type { EventKind } from "./event-kind.ts";
import { isDateOrBlank, isEmailOrBlank, maxTextLength } from "./field-types.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { checkReference, findReference, type SentReference } from "./reference-rule.ts";
import { checkUnknownFields } from "./unknown-fields.ts";
import { maxViolations, type Violation } from "./violation.ts";
import { codeOfField } from "./violation-code.ts";

export type BookingPayload = BookingInput | BookingReference;

type PayloadOf<Kind extends EventKind> = Kind extends "delete" ? BookingReference : BookingInput;

export type PayloadValidation<Kind extends EventKind = EventKind> =
  | { success: true; payload: PayloadOf<Kind> }
  | { success: false; violationList: Violation[] };

interface FieldRule {
  schema: v.GenericSchema;
  /**
   * Returns true only for text that satisfies the schema. Nearly all values are such text, and valibot's check takes
   * several times as long.
   */
  isOrdinary: (text: string) => boolean;
  /** What is no text has the rules of an unlisted field. */
  acceptsAnything: boolean;
}

const bookingRules: ReadonlyMap<string, FieldRule> = new Map(
  bookingFields.map((field) => [
    field.name,
    {
      schema: bookingEntries[field.name],
      isOrdinary: ordinaryTextOf(field),
      acceptsAnything: field.acceptsAnything,
    },
  ]),
);
const rulesByKind = {
  create: bookingRules,
  update: bookingRules,
  delete: new Map([...bookingRules].filter(([name]) => name === "consumerTripPartnerExternalReference")),
} satisfies Record<EventKind, unknown>;

function ordinaryTextOf({ type, acceptsAnything }: BookingField): FieldRule["isOrdinary"] {
  if (acceptsAnything) return () => true;
  switch (type) {
    case "date":
      return (text) => datePattern.test(text) || (text.length <= maxTextLength && isDateOrBlank(text));
    case "email":
      return (text) => text.length <= maxTextLength && isEmailOrBlank(text);
    default:
      // There are never more code points than UTF-16 code units.
      return (text) => text.length <= maxTextLength;
  }
}

/** Set explicitly so an application's global valibot configuration cannot hide violations. */
export const everyIssue = { abortEarly: false, abortPipeEarly: false };

/**
 * Checks a payload against the contract. Never throws. A member that is undefined counts as absent.
 *
 * @param value the parsed payload. `replaceUnstorableText` makes one of it that a database can store
 * @returns the value itself, unchanged and including unknown fields; or all violations, up to `maxViolations`. Listed
 *   fields come first, in the order of `bookingFields` and with at most one violation each. Then come
 *   other fields in the order of the object's keys, each before its members. If there are more than `maxJsonValues`,
 *   that is the only violation
 */
export function validatePayload<Kind extends EventKind>(kind: Kind, value: unknown): PayloadValidation<Kind> {
  if (!isPlainObject(value)) return { success: false, violationList: [notAnObject] };
  const found = findReference(value);
  const reference = checkReference(value, found);
  const { violations, hasUnknownFields } = checkListedFields(value, rulesByKind[kind], found);
  if (reference !== null) violations.push(reference);
  violations.sort((one, other) => positionOf(one) - positionOf(other));
  if (hasUnknownFields) {
    const knownNames = kind === "delete" ? namesWithRulesInDelete(value) : namesWithRules;
    violations.push(...checkUnknownFields(value, knownNames));
  }
  // Unlisted fields have been counted by their check, and a listed field with more than one value violates its own
  // rule.
  if (violations.length === 0) return { success: true, payload: asPayload<Kind>(value) };
  if (countJsonValues(value) > maxJsonValues) return { success: false, violationList: [tooManyValues] };
  return { success: false, violationList: violations.slice(0, maxViolations) };
}

const notAnObject: Violation = {
  message: "Must be an object with the booking's fields.",
  code: "not-an-object",
  propertyPath: [],
};

/** The cast is safe because both checks of `validatePayload` have passed. */
function asPayload<Kind extends EventKind>(value: PlainObject): PayloadOf<Kind> {
  return value as PayloadOf<Kind>;
}

interface ListedFields {
  violations: Violation[];
  /** Whether there are fields without a rule of their own. */
  hasUnknownFields: boolean;
}

/**
 * Checks field by field because valibot would copy the object, which is a third of the work, and nobody needs the copy.
 *
 * @param found the reference that identifies the booking, which has its own check
 */
function checkListedFields(
  payload: PlainObject,
  rules: ReadonlyMap<string, FieldRule>,
  found: SentReference | undefined,
): ListedFields {
  const violations: Violation[] = [];
  let hasUnknownFields = false;
  // Partners' payloads have many shapes. V8 reads a property fast by a name that it has just enumerated.
  for (const name in payload) {
    if (name === found?.name) continue;
    const value = payload[name];
    // JSON leaves it out.
    if (value === undefined) continue;
    const rule = rules.get(name);
    if (rule !== undefined && typeof value === "string" && rule.isOrdinary(value)) continue;
    if (rule === undefined || rule.acceptsAnything) {
      hasUnknownFields = true;
      continue;
    }
    const violation = checkField(name, value, rule);
    if (violation !== null) violations.push(violation);
  }
  return { violations, hasUnknownFields };
}

/** The field may violate several rules of its type, but each message states all of them, so the first one is enough. */
function checkField(name: string, value: unknown, { schema }: FieldRule): Violation | null {
  const { issues } = v.safeParse(schema, value, everyIssue);
  return issues === undefined
    ? null
    : { message: issues[0].message, code: codeOfField(value, issues), propertyPath: [name] };
}

const contractOrder = bookingFields.map(({ name }): string => name);

function positionOf({ propertyPath: [name = ""] }: Violation): number {
  return contractOrder.indexOf(name);
}

import * as v from "valibot";
import { type BookingInput, bookingFields, listedFields, listedNames } from "./booking-input.ts";
import { type BookingReference, referenceFields, referenceNames } from "./booking-reference.ts";
import type { EventKind } from "./event-kind.ts";
import { isPlainObject, type PlainObject } from "./plain-object.ts";
import { checkUnknownFields } from "./unknown-fields.ts";
import { maxViolations, type Violation } from "./violation.ts";

export type BookingPayload = BookingInput | BookingReference;

export type PayloadValidation =
  | { success: true; payload: BookingPayload }
  | { success: false; violationList: Violation[] };

const bookingRules = { listed: listedFields, names: listedNames };
const rulesByKind = {
  create: bookingRules,
  update: bookingRules,
  delete: { listed: referenceFields, names: referenceNames },
} satisfies Record<EventKind, unknown>;

/** Set here, so that an application's own valibot configuration can't hide a violation. */
export const everyIssue = { abortEarly: false, abortPipeEarly: false };

/**
 * Checks a payload against the contract. Never throws, whatever the value.
 *
 * @param value what was sent, already parsed
 * @returns the value itself, unchanged, unknown fields included. Or every violation, up to `maxViolations`: first of
 *   listed fields in the order of `bookingFields`, at most one each; then of retired names; then of unknown fields in
 *   the order of the object's keys, each before what is inside it
 */
export function validatePayload(kind: EventKind, value: unknown): PayloadValidation {
  if (!isPlainObject(value)) return { success: false, violationList: [notAnObject] };
  const { listed, names } = rulesByKind[kind];
  const { issues } = v.safeParse(listed, value, everyIssue);
  const unknownFields = checkUnknownFields(value, names);
  if (issues === undefined && unknownFields.length === 0) return { success: true, payload: asPayload(value) };
  const violationList = [...toViolations(issues ?? []), ...unknownFields].slice(0, maxViolations);
  return { success: false, violationList };
}

const notAnObject: Violation = { message: "Must be an object with the booking's fields.", propertyPath: [] };

/** Both steps of `validatePayload` have passed: the value is what `BookingInput` or `BookingReference` describe. */
function asPayload(value: PlainObject): BookingPayload {
  return value as BookingPayload;
}

const positions = new Map<string, number>(bookingFields.map(({ name }, index) => [name, index]));

/** A field may break several of its type's rules, but its message says them all: the first one stands for the field. */
function toViolations(issues: readonly v.BaseIssue<unknown>[]): Violation[] {
  const messages = new Map<string, string>();
  for (const { message, path } of issues) {
    const name = String(path?.[0]?.key);
    if (!messages.has(name)) messages.set(name, message);
  }
  const position = (name: string) => positions.get(name) ?? positions.size;
  return [...messages]
    .sort(([a], [b]) => position(a) - position(b))
    .map(([name, message]) => ({ message, propertyPath: [name] }));
}

import { bookingFields, type Violation } from "@booking-events/schema";
import type { BodyObject } from "./decode-body.ts";

/** What the log and the metrics may say about a violation: nothing that the sender wrote. */
export interface FieldViolation {
  /** A field's name in the contract; `unlisted`: a field that the contract does not name; `payload`: the whole of it. */
  field: string;
  /** What was wrong, such as `null` or `too-long`. */
  rule: string;
}

const maxLengths = new Map<string, number>(bookingFields.map(({ name, maxLength }) => [name, maxLength]));
const retiredNames = new Set(["consumerTripBookingDate", "consumerTripDepartureFlightAirline"]);

/** Describes violations by the kind of value that was sent, without the value. */
export function describeViolations(payload: BodyObject, violations: readonly Violation[]): FieldViolation[] {
  return violations.map(({ propertyPath }) => {
    const [name, ...rest] = propertyPath;
    if (name === undefined) return { field: "payload", rule: "too-many-values" };
    if (retiredNames.has(name)) return { field: name, rule: "retired" };
    const maxLength = maxLengths.get(name);
    const value = valueAt(payload, propertyPath);
    const isOfField = maxLength !== undefined && rest.length === 0;
    return {
      field: maxLength === undefined ? "unlisted" : name,
      rule: isOfField ? describeField(value, maxLength) : describeUnlisted(value, propertyPath.at(-1) ?? ""),
    };
  });
}

/** Returns undefined if a name was truncated. */
function valueAt(payload: BodyObject, path: readonly string[]): unknown {
  let value: unknown = payload;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as BodyObject)[name];
  }
  return value;
}

function describeField(value: unknown, maxLength: number): string {
  if (value === undefined) return "missing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value !== "string") return typeof value;
  if (value === "") return "empty";
  if (value.trim() === "") return "blank";
  if (!isStorable(value)) return "unstorable";
  return Array.from(value).length > maxLength ? "too-long" : "malformed";
}

function describeUnlisted(value: unknown, name: string): string {
  if (!isStorable(name)) return "unstorable";
  if (typeof value === "number") return "inexact-number";
  return typeof value === "object" && value !== null ? "too-deep" : "unstorable";
}

function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes("\0");
}

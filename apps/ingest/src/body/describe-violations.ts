import type { FieldViolation } from "@booking-events/http";
import { BookingInput, type Violation } from "@booking-events/schema";

const listedNames = new Set(Object.keys(BookingInput.entries));

/** Describes violations without anything that the sender wrote. */
export function describeViolations(violations: readonly Violation[]): FieldViolation[] {
  return violations.map(({ code, propertyPath: [name] }) => {
    if (name === undefined) return { field: "payload", rule: code };
    return { field: listedNames.has(name) ? name : "unlisted", rule: code };
  });
}

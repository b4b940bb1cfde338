import { BookingInput, type Violation, type ViolationCode } from "@booking-events/schema";

/** What the log and the metrics may say about a violation: nothing that the sender wrote. */
export interface FieldViolation {
  /** A field's name in the contract; `unlisted`: a field that the contract does not name; `payload`: the whole of it. */
  field: string;
  rule: ViolationCode;
}

const listedNames = new Set(Object.keys(BookingInput.entries));

export function describeViolations(violations: readonly Violation[]): FieldViolation[] {
  return violations.map(({ code, propertyPath: [name] }) => {
    if (name === undefined) return { field: "payload", rule: code };
    return { field: listedNames.has(name) ? name : "unlisted", rule: code };
  });
}

import type { FieldViolation, ObserveRequest } from "@booking-events/http";
import { Counter, type Registry } from "@booking-events/runtime";
import { BookingInput, type Violation } from "@booking-events/schema";

export function createViolationCounter(metrics: Registry): ObserveRequest {
  const violated = new Counter({
    name: "ingest_violations_total",
    help: "Violated rules of payloads, by field and rule. Fields that the contract does not list are unlisted.",
    labelNames: ["field", "rule"],
    registers: [metrics],
  });
  return ({ violations = [] }) => {
    for (const violation of violations) violated.inc({ ...violation });
  };
}

const listedNames = new Set(Object.keys(BookingInput.entries));

/** Describes violations without anything that the sender wrote. */
export function describeViolations(violations: readonly Violation[]): FieldViolation[] {
  return violations.map(({ code, propertyPath: [name] }) => {
    if (name === undefined) return { field: "payload", rule: code };
    return { field: listedNames.has(name) ? name : "unlisted", rule: code };
  });
}

import type { ObserveRequest } from "@booking-events/http";
import { Counter, type Registry } from "@booking-events/runtime";

/** Returns a function that counts the violations of refused payloads. */
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

import { Refusal } from "@booking-events/http";
import { answers, type Violation } from "@booking-events/schema";
import { describeViolations } from "../observe/count-violations.ts";

export function refusePayload(violations: Violation[]): Refusal {
  return new Refusal(answers.invalidData(violations), { violations: describeViolations(violations) });
}

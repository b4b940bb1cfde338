import type { BookingChange } from "../read-changes.ts";
import type { Outcome } from "./run-attempt.ts";

/** What happens to deliveries, for metrics. It holds nothing of a booking but its id. */
export type DeliveryEvent = { name: string } & (
  | {
      type: "attempt";
      /** `interrupted`: the process stops, or has lost its database or its lease. It costs no attempt. */
      outcome: "done" | "failed" | "timeout" | "retry-after" | "stopped" | "interrupted";
      /** A class such as `http-500`, or an error's code or name; null: it has not failed. */
      failure: string | null;
      durationMs: number;
      /** From the beginning of the transaction that changed the booking to the end of the attempt. */
      sinceChangeMs: number;
    }
  | { type: "parked" | "died"; bookingId: string; changeId: number; failure: string }
  | { type: "breaker-opened" | "breaker-closed" }
  | { type: "active" | "standby" }
);

export function toAttemptEvent(
  name: string,
  outcome: Outcome,
  { startMs, changes }: { startMs: number; changes: BookingChange[] },
): DeliveryEvent {
  return {
    type: "attempt",
    name,
    outcome: outcome.kind,
    failure: outcome.kind === "failed" || outcome.kind === "timeout" ? outcome.failure : null,
    durationMs: performance.now() - startMs,
    sinceChangeMs: Date.now() - Math.min(...changes.map(({ changedAt }) => changedAt.getTime())),
  };
}

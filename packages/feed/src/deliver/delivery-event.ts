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
      deliveries: number;
    }
  | { type: "parked" | "died"; bookingId: string; changeId: number; failure: string }
  | { type: "breaker-opened" | "breaker-closed" }
  | { type: "active" | "standby" }
);

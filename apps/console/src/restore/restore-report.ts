import type { Restored, RestoreRequest, RestoreSummary } from "@booking-events/operations";

/** Of a restore, or of its preview. */
export interface RestoreReport {
  kind: "restore";
  isPreview: boolean;
  /** Of bookings of a test partner. */
  isTest: boolean;
  request: RestoreRequest;
  summary: RestoreSummary;
  /** What it waits for at the moment, in sentences. */
  waitsFor: string | null;
  /** Null: it has not ended. */
  restored: Restored | null;
}

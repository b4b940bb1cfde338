import { type FieldCount, Recorder } from "@booking-events/queue";
import { createTallies, type Registry } from "@booking-events/runtime";
import type { FieldWarning } from "@booking-events/schema";
import { countField } from "./count-field.ts";

/** @param eventId null: it was a dry run */
export type RecordWarnings = (partner: string, eventId: string | null, warnings: readonly FieldWarning[]) => void;

const recordingLimits = {
  intervalMs: 1_000,
  /** Different counts until the next write. Others are only in the metrics. */
  maxWaiting: 500,
};

/**
 * Counts warnings in the metrics, and per day in Redis, so that an operator can look them up for a partner. If Redis does
 * not take counts, they are dropped, because they may have been added even so. The metrics have them all.
 */
export function createWarningRecorder(options: {
  write: (counts: FieldCount[]) => Promise<void>;
  onError: (error: unknown) => void;
  metrics: Registry;
  limits?: typeof recordingLimits;
}): { record: RecordWarnings; stop(): Promise<void> } {
  const { write, onError, limits = recordingLimits } = options;
  const recorder = new Recorder<FieldCount>({ ...limits, write, onFailure: onError });
  const tallyOf = createTallies({
    name: "ingest_warnings_total",
    help: "Warnings in answers. The field is the listed one that was meant or that has the value, or empty.",
    labelNames: ["partner", "field", "code"],
    registers: [options.metrics],
  });

  const eventTallyOf = createTallies({
    name: "ingest_warned_events_total",
    help: "Accepted events and dry runs that got a warning, or several.",
    labelNames: ["partner"],
    registers: [options.metrics],
  });

  function count(partner: string, eventId: string | null, { field, code }: FieldWarning): void {
    tallyOf(partner, field, code).count += 1;
    countField(recorder, { partner, field, code, requestId: eventId });
  }

  return {
    record(partner, eventId, warnings) {
      if (warnings.length > 0) eventTallyOf(partner).count += 1;
      for (const warning of warnings) count(partner, eventId, warning);
    },
    stop: () => recorder.stop(),
  };
}

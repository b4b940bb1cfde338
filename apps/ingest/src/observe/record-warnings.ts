import { Recorder, type Records, toDay, type WarningCount } from "@booking-events/queue";
import { createTallies, type Registry } from "@booking-events/runtime";
import type { FieldWarning } from "@booking-events/schema";

export type RecordWarnings = (partner: string, warnings: readonly FieldWarning[]) => void;

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
  write: Records["addWarningCounts"];
  onError: (error: unknown) => void;
  metrics: Registry;
  limits?: typeof recordingLimits;
}): { record: RecordWarnings; stop(): Promise<void> } {
  const { write, onError, limits = recordingLimits } = options;
  const recorder = new Recorder<WarningCount>({ ...limits, write, onFailure: onError });
  const tallyOf = createTallies({
    name: "ingest_warnings_total",
    help: "Warnings in answers. The field is the listed one that was meant or that has the value.",
    labelNames: ["partner", "field", "code"],
    registers: [options.metrics],
  });

  function count(partner: string, { field, code }: FieldWarning): void {
    tallyOf(partner, field, code).count += 1;
    const day = toDay(new Date());
    const key = `${partner} ${day} ${field} ${code}`;
    const known = recorder.get(key);
    if (known !== undefined) known.count += 1;
    else recorder.set(key, { partner, day, field, code, count: 1 });
  }

  return {
    record(partner, warnings) {
      for (const warning of warnings) count(partner, warning);
    },
    stop: () => recorder.stop(),
  };
}

import { type RecordWriter, toDay, type WarningCount } from "@booking-events/queue";
import { createTallies, type Registry } from "@booking-events/runtime";
import type { FieldWarning } from "@booking-events/schema";

export type RecordWarnings = (partner: string, warnings: readonly FieldWarning[]) => void;

export interface WarningRecorder {
  /** Never waits and never throws. */
  record: RecordWarnings;
  /** Writes what has not been written. Never throws. */
  stop(): Promise<void>;
}

const recordingLimits = {
  intervalMs: 1_000,
  /** Different counts until the next write. Others are only in the metrics. */
  maxWaiting: 500,
};

/**
 * Counts warnings in the metrics, and per day in Redis, so that an operator can look them up for a partner. Counts are
 * written together, apart from requests. If Redis does not take them, they are dropped, because they may have been
 * added even so. The metrics have them all.
 *
 * @param options.onError called for each failed write
 */
export function createWarningRecorder(options: {
  addWarningCounts: RecordWriter<WarningCount>["write"];
  onError: (error: unknown) => void;
  metrics: Registry;
  limits?: typeof recordingLimits;
}): WarningRecorder {
  const { addWarningCounts, onError, limits = recordingLimits } = options;
  const tallyOf = createTallies({
    name: "ingest_warnings_total",
    help: "Warnings in answers. The field is the listed one that was meant or that has the value.",
    labelNames: ["partner", "field", "code"],
    registers: [options.metrics],
  });
  let waiting = new Map<string, WarningCount>();
  let writing: Promise<void> | undefined;

  async function write(): Promise<void> {
    const counts = [...waiting.values()];
    waiting = new Map();
    if (counts.length === 0) return;
    try {
      await addWarningCounts(counts);
    } catch (error) {
      onError(error);
    }
  }

  /** One write at a time. While Redis is slow, counts wait. */
  function writeNext(): void {
    writing ??= write().finally(() => {
      writing = undefined;
    });
  }

  function count(partner: string, { field, code }: FieldWarning): void {
    tallyOf(partner, field, code).count += 1;
    const day = toDay(new Date());
    const key = `${partner} ${day} ${field} ${code}`;
    const known = waiting.get(key);
    if (known !== undefined) known.count += 1;
    else if (waiting.size < limits.maxWaiting) waiting.set(key, { partner, day, field, code, count: 1 });
  }

  const timer = setInterval(writeNext, limits.intervalMs).unref();
  return {
    record(partner, warnings) {
      for (const warning of warnings) count(partner, warning);
    },
    async stop() {
      clearInterval(timer);
      await writing;
      await write();
    },
  };
}

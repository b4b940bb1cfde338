import type { ObserveRequest } from "@booking-events/http";
import { type AnswerCount, type FieldCount, Recorder } from "@booking-events/queue";
import { countField } from "./count-field.ts";

const recordingLimits = {
  intervalMs: 1_000,
  /** Different counts until the next write, of all partners together. Others are only in the metrics. */
  maxWaiting: 5_000,
};

/**
 * Counts the answers to partners' events by the hour, and violated rules by the day, in Redis, so that partners can look
 * at what they have sent. If Redis does not take counts, they are dropped, because they may have been added even so.
 */
export function createAnswerRecorder(options: {
  writeAnswers: (counts: AnswerCount[]) => Promise<void>;
  writeViolations: (counts: FieldCount[]) => Promise<void>;
  onError: (error: unknown) => void;
  limits?: typeof recordingLimits;
}): { record: ObserveRequest; stop(): Promise<void> } {
  const { writeAnswers, writeViolations, onError: onFailure, limits = recordingLimits } = options;
  const answers = new Recorder<AnswerCount>({ ...limits, write: writeAnswers, onFailure });
  const violations = new Recorder<FieldCount>({ ...limits, write: writeViolations, onFailure });

  return {
    record({ partner, status, outcome: code, violations: violated = [], requestId }) {
      if (partner === undefined || status === undefined) return;
      const hour = Math.floor(Date.now() / hourMs);
      const key = `${partner} ${hour} ${status} ${code}`;
      const known = answers.get(key);
      if (known !== undefined) known.count += 1;
      else answers.set(key, { partner, hour: toHour(hour), status, code, count: 1 });
      for (const { field, rule } of violated) countField(violations, { partner, field, code: rule, requestId });
    },
    async stop() {
      await Promise.all([answers.stop(), violations.stop()]);
    },
  };
}

const hourMs = 3_600_000;

/** Such as `2026-11-22T13`. */
function toHour(hour: number): string {
  return new Date(hour * hourMs).toISOString().slice(0, "2026-11-22T13".length);
}

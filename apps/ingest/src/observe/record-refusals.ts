import type { ObserveRequest } from "@booking-events/http";
import { type RecordedRefusal, Recorder, type Records } from "@booking-events/queue";
import { createTallies, type Registry } from "@booking-events/runtime";

const recordingLimits = {
  intervalMs: 1_000,
  /** Until the next write, of one partner, or of all senders without a known secret together. */
  maxOfSender: 20,
  /** Until the next write. Redis stores these in about a millisecond. */
  maxWaiting: 500,
};
/** The log has all of them. */
const maxViolationsRecorded = 10;

/**
 * Keeps refusals in Redis, so that an operator can look them up without the log of every process. What is too much, or
 * can't be written, is dropped and counted.
 */
export function createRefusalRecorder(options: {
  write: Records["writeRefusals"];
  onError: (error: unknown) => void;
  metrics: Registry;
  limits?: typeof recordingLimits;
}): { record: ObserveRequest; stop(): Promise<void> } {
  const { write, onError, limits = recordingLimits } = options;
  const dropped = createTallies({
    name: "ingest_refusals_dropped_total",
    help: "Refusals that were not recorded, by reason: too-many at once, or redis did not take them.",
    labelNames: ["reason"],
    registers: [options.metrics],
  });
  const [tooMany, lost] = [dropped("too-many"), dropped("redis")];
  const ofSender = new Map<string | undefined, number>();
  const recorder = new Recorder<RecordedRefusal>({
    ...limits,
    write(refusals) {
      ofSender.clear();
      return write(refusals);
    },
    onFailure(error, refusals) {
      lost.count += refusals.size;
      onError(error);
    },
  });

  return {
    record(request) {
      const { status, partner } = request;
      if (status === undefined || status < 400) return;
      const count = ofSender.get(partner) ?? 0;
      const isKept =
        count < limits.maxOfSender && recorder.set(`${partner ?? "*"} ${count}`, toRefusal(request, status));
      if (isKept) ofSender.set(partner, count + 1);
      else tooMany.count += 1;
    },
    stop: () => recorder.stop(),
  };
}

function toRefusal(request: Parameters<ObserveRequest>[0], status: number): RecordedRefusal {
  const { requestId, partner, secretId, kind, outcome, violations = [], subject, ip } = request;
  return {
    requestId,
    at: new Date(),
    status,
    code: outcome,
    partner: partner ?? null,
    secretId: secretId ?? null,
    kind: kind ?? null,
    violations: violations.slice(0, maxViolationsRecorded).map(({ field, rule }) => `${field}:${rule}`),
    subject,
    ip: ip ?? null,
  };
}

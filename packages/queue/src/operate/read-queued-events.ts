import { type EventEnvelope, type EventKind, parseEnvelopeText } from "@booking-events/schema";
import type { Redis } from "ioredis";
import type { List } from "../events/lists.ts";
import { queueKeys, replayJobName } from "../events/queue-name.ts";

export interface QueuedEvent {
  eventId: string;
  /** The kind, or null if an operator put the event back. */
  kind: EventKind | null;
  /**
   * `waiting`: for a worker. `delayed`: for its next attempt. `held`: by a worker. `given-up`: for a worker that tries
   * it alone.
   */
  state: "waiting" | "delayed" | "held" | "given-up";
  /** Null if this release can't read it. */
  envelope: EventEnvelope | null;
  failedAttempts: number;
  /** Why the last attempt failed: a code and a sentence that holds nothing of the event. */
  lastFailure: string | null;
  nextAttemptAt: Date | null;
  heldSince: Date | null;
}

/** BullMQ keeps the time of the next attempt in the upper bits of the score. */
const delayedScoreUnit = 0x1000;

/** @param found ids in a list, with their scores. Events that have left the queue meanwhile are left out */
export async function readQueuedEvents(
  redis: Redis,
  prefix: string,
  { state }: List,
  found: { id: string; score: string }[],
): Promise<QueuedEvent[]> {
  const queueKey = queueKeys(prefix);
  const fields = ["name", "data", "atm", "failedReason", "processedOn"];
  const jobs = await readFields(
    redis,
    found.map(({ id }) => queueKey(id)),
    fields,
  );
  return found.flatMap(({ id: eventId, score }, index) => {
    const [job = null, data = null, failedAttempts, lastFailure = null, processedOn = null] = jobs[index] ?? [];
    if (data === null) return [];
    const parsed = parseEnvelopeText(data);
    const envelope = parsed.success ? parsed.envelope : null;
    return {
      eventId,
      kind: envelope?.kind ?? (job === replayJobName ? null : (job as EventKind)),
      state,
      envelope,
      failedAttempts: Number(failedAttempts ?? 0),
      lastFailure,
      nextAttemptAt: state === "delayed" ? toAttemptTime(score) : null,
      heldSince: state === "held" && processedOn !== null ? new Date(Number(processedOn)) : null,
    };
  });
}

/** @param score of a delayed event */
export function toAttemptTime(score: string): Date {
  return new Date(Math.floor(Number(score) / delayedScoreUnit));
}

/** @returns the fields of each job, in the same order. Another program may have put anything in the place of a job */
async function readFields(redis: Redis, keys: string[], fields: string[]): Promise<(string | null)[][]> {
  if (keys.length === 0) return [];
  const pipeline = redis.pipeline();
  for (const key of keys) pipeline.hmget(key, ...fields);
  const answers = (await pipeline.exec()) ?? [];
  return answers.map(([error, values]) => (error === null ? (values as (string | null)[]) : []));
}

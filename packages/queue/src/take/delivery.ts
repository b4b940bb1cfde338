import { type Job, raw2NextJobData } from "bullmq";
import { EventJob, type EventQueue, type JobContent } from "../events/event-job.ts";
import { replayJobName } from "../events/queue-name.ts";
import { maxAttempts } from "../events/retry-policy.ts";

/** A delivery of an event: the first one, a retry, or a repetition after a crash. */
export interface Delivery {
  /** The unchanged text from Redis. Redis is a boundary, so it may not be an envelope, or even JSON. */
  text: string;
  /**
   * Events with the same subject are usually about the same booking, and can be processed together in order. Events
   * with different subjects may be about the same booking too: only the text decides.
   */
  subject: string;
  /** The event's id in the queue, for an event whose data cannot be read. */
  jobId: string;
  /** The number of this attempt, starting at 1. */
  attempt: number;
  isLastAttempt: boolean;
  /** Whether an operator put the event back after it had failed. */
  isReplay: boolean;
  /** When ingest queued the event, in epoch milliseconds. */
  queuedAtMs: number;
  /**
   * Which part of the job around the text is damaged, as a sentence without any values; null if none is. If there is
   * damage, the text is all that is known about the event.
   */
  damage: string | null;
}

/**
 * Thrown by a handler that was told to stop before it could apply the event. The event goes back to the head of the
 * queue, and no attempt is counted. Events released while the consumer drains keep their order.
 */
export class ReleaseDelivery extends Error {
  override name = "ReleaseDelivery";
}

/**
 * Thrown by a handler to have the event delivered again after a delay. No attempt is counted, and other events are
 * delivered in the meantime.
 */
export class DelayDelivery extends Error {
  override name = "DelayDelivery";
  readonly delayMs: number;

  constructor(delayMs: number) {
    super("The event will be delivered again later.");
    this.delayMs = delayMs;
  }
}

export function toDelivery(job: Job<JobContent>, attempt: number = job.attemptsMade + 1): Delivery {
  return {
    text: job.data.text,
    subject: job.data.subject,
    jobId: job.id ?? "",
    attempt,
    isLastAttempt: attempt >= (job.opts.attempts ?? maxAttempts),
    isReplay: job.name === replayJobName,
    queuedAtMs: job.timestamp,
    damage: job.data.damage,
  };
}

/** @param fields of a job in the failed set, as a script returns them */
export function toFailedDelivery(queue: EventQueue, fields: unknown[], jobId: string): Delivery {
  const json = raw2NextJobData([fields, jobId, 0, 0])[0];
  const job = EventJob.fromJSON<JobContent, unknown, string>(queue, json, jobId);
  // BullMQ counted moving the job to the failed set as an attempt.
  return toDelivery(job, Math.max(1, job.attemptsMade));
}

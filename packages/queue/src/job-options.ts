import type { JobsOptions } from "bullmq";
import { maxAttempts } from "./retry-policy.ts";

/**
 * What every job carries into Redis.
 *
 * The job's id is the event's id: should ioredis send an add again after a lost connection, BullMQ sees the id and adds
 * nothing. That only saves work; PostgreSQL decides what is a duplicate. A BullMQ counter would start again at 1 after
 * Redis has lost its data, and overwrite.
 */
export function jobOptions(eventId: string): JobsOptions {
  return {
    jobId: eventId,
    attempts: maxAttempts,
    backoff: { type: "custom" },
    // PostgreSQL holds what was applied; a second copy of guests' data in Redis would serve nobody.
    removeOnComplete: true,
    // Only the worker's sweep takes a failed job away, once it stands in dead_letters.
    removeOnFail: false,
  };
}

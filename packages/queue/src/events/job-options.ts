import type { JobsOptions } from "bullmq";
import { maxAttempts } from "./retry-policy.ts";

/** The options of every job. Its id is the event's id. */
export const jobOptions = {
  attempts: maxAttempts,
  backoff: { type: "custom" },
  // PostgreSQL stores applied events; a second copy of guests' data in Redis would be useless.
  removeOnComplete: true,
  // Only the worker's sweep removes a failed job, once it is in dead_letters.
  removeOnFail: false,
} satisfies JobsOptions;

/** As {@link jobOptions} are stored in a job. */
export const jobOptionsText: string = JSON.stringify(jobOptions);

import type { JobsOptions } from "bullmq";
import { maxAttempts } from "./retry-policy.ts";

/** What every job carries into Redis, next to its id, which is the event's. */
export const jobOptions = {
  attempts: maxAttempts,
  backoff: { type: "custom" },
  // PostgreSQL holds what was applied; a second copy of guests' data in Redis would serve nobody.
  removeOnComplete: true,
  // Only the worker's sweep takes a failed job away, once it stands in dead_letters.
  removeOnFail: false,
} satisfies JobsOptions;

import { DelayedError, type Job, UnrecoverableError, WaitingError } from "bullmq";
import type { Redis } from "ioredis";
import type { JobContent } from "../events/event-job.ts";
import { DelayDelivery, type Delivery, ReleaseDelivery, toDelivery } from "./delivery.ts";
import type { HeldEvents } from "./held-events.ts";
import { createEventReleaser } from "./release-events.ts";

export type HandleJob = (job: Job<JobContent>, token?: string) => Promise<void>;

/**
 * Returns what BullMQ calls for each job. It hands the event to `handle`, and tells BullMQ what becomes of the job by
 * what it throws.
 *
 * @param options.untilAllCanGoBack returns what a released event waits for before it goes back
 */
export function createJobHandler(options: {
  redis: Redis;
  prefix: string;
  held: HeldEvents;
  handle: (delivery: Delivery) => Promise<void>;
  untilAllCanGoBack: () => Promise<unknown> | undefined;
}): HandleJob {
  const { held, handle, untilAllCanGoBack } = options;
  const releaseEvent = createEventReleaser(options.redis, options.prefix);

  /** @throws WaitingError, which tells BullMQ to leave the job alone */
  async function release(job: Job<JobContent>, token: string): Promise<never> {
    held.endHandling(job);
    await untilAllCanGoBack();
    held.remove(job);
    await releaseEvent({ jobId: job.id ?? "", token });
    throw new WaitingError();
  }

  return async function handleJob(job, token = "") {
    try {
      await handle(toDelivery(job));
    } catch (error) {
      if (error instanceof ReleaseDelivery) return await release(job, token);
      if (error instanceof DelayDelivery) {
        await job.moveToDelayed(Date.now() + error.delayMs, token);
        throw new DelayedError();
      }
      throw toStorableError(error);
    } finally {
      held.remove(job);
    }
  };
}

/** BullMQ stores an error's message and stack. A thrown value that is not an error would leave the job stuck. */
function toStorableError(error: unknown): Error {
  return error instanceof Error ? error : new UnrecoverableError("The handler threw something that is not an error.");
}

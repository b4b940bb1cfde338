import { applyEvents, isLockTimeout } from "@booking-events/worker/apply/apply-events";
import { runWorker, type WorkerParts } from "@booking-events/worker/run-worker";

let last: Promise<unknown> = Promise.resolve();

/** The mistake: one batch at a time, which waits for the lock of each booking. So one lock makes all bookings wait. */
await runWorker(process.env, {
  applyEvents(...batch) {
    const applied = last.then(() => applyWaiting(...batch));
    last = applied.catch(() => {});
    return applied;
  },
});

async function applyWaiting(
  ...[pool, envelopes, options]: Parameters<WorkerParts["applyEvents"]>
): ReturnType<WorkerParts["applyEvents"]> {
  for (;;) {
    try {
      return await applyEvents(pool, envelopes, { ...options, isAlone: true });
    } catch (error) {
      if (!isLockTimeout(error)) throw error;
    }
  }
}

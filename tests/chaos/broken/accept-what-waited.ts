import { watchLoad } from "@booking-events/ingest/limits/shed-load";
import { runIngest } from "@booking-events/ingest/run-ingest";

/** The mistake: an ingest that was frozen accepts what waited for it, however long. */
await runIngest(process.env, {
  watchFreezes: () => ({
    trackConnection() {},
    wasFrozen: () => false,
    isAccepting: () => false,
    recordLostTime() {},
    stop() {},
  }),
  // A long freeze is seen in the mean delay of the event loop, too.
  watchLoad: (options) => {
    const limits = { ...options.limits, maxEventLoopDelayMs: Number.POSITIVE_INFINITY };
    return watchLoad({ ...options, limits });
  },
});

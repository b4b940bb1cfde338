import { runIngest } from "../../apps/ingest/src/run-ingest.ts";
import { watchLoad } from "../../apps/ingest/src/shed-load.ts";

/** The mistake: an ingest that was frozen accepts what waited for it meanwhile, however long. */
await runIngest(process.env, {
  watchFreezes: () => ({ noteConnection() {}, wasFrozen: () => false, noteTimeLost() {}, stop() {} }),
  // A long freeze is seen in the mean delay of the event loop, too.
  watchLoad: (options) => {
    const limits = { ...options.limits, maxEventLoopDelayMs: Number.POSITIVE_INFINITY };
    return watchLoad({ ...options, limits });
  },
});

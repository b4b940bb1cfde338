import { runIngest } from "@booking-events/ingest/run-ingest";

/** The mistake: an ingest that was frozen accepts what waited for it, however long. */
await runIngest(process.env, {
  watchFreezes: () => ({
    begin() {},
    trackConnection() {},
    wasFrozen: () => false,
    isAccepting: () => false,
    recordLostTime() {},
    stop() {},
  }),
});

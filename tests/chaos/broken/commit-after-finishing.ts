import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { runWorker } from "@booking-events/worker/run-worker";

/** The mistake: a delivery counts as done before its event is in PostgreSQL. */
await runWorker(process.env, {
  async applyEvents(pool, envelopes, options) {
    void applyEvents(pool, envelopes, options).catch(() => {});
    return new Map(envelopes.map(({ eventId }) => [eventId, "unchanged"]));
  },
});

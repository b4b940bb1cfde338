import { applyEvents } from "../../apps/worker/src/apply-events.ts";
import { runWorker } from "../../apps/worker/src/run-worker.ts";

/** The mistake: a delivery counts as done before its event stands in PostgreSQL. */
await runWorker(process.env, {
  async applyEvents(pool, envelopes, options) {
    void applyEvents(pool, envelopes, options).catch(() => {});
    return new Map(envelopes.map(({ eventId }) => [eventId, "unchanged"]));
  },
});

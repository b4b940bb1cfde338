import { applyEvents } from "@booking-events/worker/apply/apply-events";
import { runWorker } from "@booking-events/worker/run-worker";

let lastSequence = 0;

/** The mistake: events take effect in the order in which they arrive at a worker, not in that of their receipt. */
await runWorker(process.env, {
  applyEvents: (pool, envelopes, options) =>
    applyEvents(
      pool,
      envelopes.map((envelope) => ({ ...envelope, sequence: nextSequence() })),
      options,
    ),
});

function nextSequence(): number {
  lastSequence = Math.max(Date.now() * 1_000, lastSequence + 1);
  return lastSequence;
}

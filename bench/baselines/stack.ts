/** Our ingest with everything but the queue: an event is accepted as soon as it is valid. */
import { envelopeVersion } from "@booking-events/schema";
import { runIngest } from "../../apps/ingest/src/run-ingest.ts";

await runIngest(process.env, {
  createProducer: () => ({
    enqueue: async (event) => ({ version: envelopeVersion, sequence: 1, ...event }),
    requeue: async () => {},
    findProblems: async () => [],
    measureLoad: async () => ({ backlog: 0, memoryShare: 0 }),
    writeLastUses: async () => {},
    close: async () => {},
  }),
});

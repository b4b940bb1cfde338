import { createProducer } from "@booking-events/queue";
import { runIngest } from "../../apps/ingest/src/run-ingest.ts";

/** The mistake: ingest accepts events whether Redis keeps them on disk or not. */
await runIngest(process.env, {
  createProducer: (options) => ({ ...createProducer(options), findProblems: async () => [] }),
});

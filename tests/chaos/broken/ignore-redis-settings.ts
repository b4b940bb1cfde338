import { runIngest } from "@booking-events/ingest/run-ingest";
import { createProducer } from "@booking-events/queue";

/** The mistake: ingest accepts events whether Redis keeps them on disk or not. */
await runIngest(process.env, {
  createProducer: (options) => ({ ...createProducer(options), findProblems: async () => [] }),
});

/** Our ingest without one of its guarantees, to see what that costs: WITHOUT is `limits` or `fsync`. */

import { runIngest } from "@booking-events/ingest/run-ingest";
import { createProducer } from "@booking-events/queue";

const without = process.env["WITHOUT"];

await runIngest(process.env, {
  ...(without === "limits" && { createPartnerLimiter: () => async () => ({ headers: {} }) }),
  // Redis itself is told to go without; ingest would refuse events then.
  ...(without === "fsync" && {
    createProducer: (options) => ({ ...createProducer(options), findProblems: async () => [] }),
  }),
});

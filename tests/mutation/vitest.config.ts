import { join } from "node:path";
import { defineConfig } from "vitest/config";

const root = join(import.meta.dirname, "../..");
/** A package's other entry comes before the package. */
const packages = ["schema/normalise", "bookings", "http", "partners", "queue", "runtime", "schema", "store"];

/** The tests of the mutated files that need no services. */
export default defineConfig({
  root,
  resolve: {
    // node_modules would lead out of Stryker's copy, to files that are not mutated.
    alias: packages.map((name) => ({
      find: `@booking-events/${name}`,
      replacement: join(root, "packages", name.replace(/(?=\/)|$/, "/src"), "index.ts"),
    })),
  },
  test: {
    // Stryker instruments the code to see which changes a test runs, which makes it slower.
    testTimeout: 10_000,
    env: { REFOLDED_EVENTS: "4" },
    include: [
      "apps/ingest/src/body/decode-body.test.ts",
      "apps/ingest/src/load/take-turns.test.ts",
      "packages/http/src/partners/limit-partners.test.ts",
      "apps/worker/src/outages/{classify-fault,wait-out-outage}.test.ts",
      "tests/chaos/fold-against-oracle.test.ts",
      "packages/bookings/src/{fold,plan-booking,refold,find-repeats}.test.ts",
      "packages/feed/src/deliver/{back-off,booking-queues,breaker,decide,filter,finder,lease-watch}.test.ts",
      "packages/feed/src/deliver/{parking,pending-progress,turns,under-way}.test.ts",
      "packages/operations/src/restore/{describe-restore,plan-restore}.test.ts",
      "packages/queue/src/events/retry-policy.test.ts",
      "packages/runtime/src/graceful-shutdown.test.ts",
      "packages/schema/src/normalise/{airport-code,country,currency,date,email,flag,language}.test.ts",
      "packages/schema/src/normalise/{normalise-booking,phone,tidy-number,time-zone}.test.ts",
      "packages/schema/src/warnings/value-warnings.test.ts",
      "packages/schema/src/json/{exact-double,lossless-json,parse-json-exactly,parse-json-object}.test.ts",
    ],
  },
});

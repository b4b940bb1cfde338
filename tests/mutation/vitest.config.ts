import { join } from "node:path";
import { defineConfig } from "vitest/config";

const root = join(import.meta.dirname, "../..");
const packages = ["bookings", "partners", "queue", "runtime", "schema", "store"];

/** The tests that need no services, of the rooms whose files are mutated. */
export default defineConfig({
  root,
  resolve: {
    // Rather than by node_modules, which would lead out of Stryker's copy, to files that are not mutated.
    alias: packages.map((name) => ({
      find: `@booking-events/${name}`,
      replacement: join(root, "packages", name, "src", "index.ts"),
    })),
  },
  test: {
    // Code that tells which changes it passes is slower.
    testTimeout: 10_000,
    include: [
      "apps/ingest/src/body/{decode-body,held-by-double,kept-whole,parse-json-exactly}.test.ts",
      "apps/ingest/src/limits/{limit-partners,take-turns}.test.ts",
      "apps/worker/src/{apply/plan-booking,deliver/describe-fault,deliver/wait-out-outage}.test.ts",
      "tests/chaos/fold-against-oracle.test.ts",
      "packages/bookings/src/{fold,settle-keys}.test.ts",
      "packages/queue/src/retry-policy.test.ts",
      "packages/runtime/src/graceful-shutdown.test.ts",
    ],
  },
});

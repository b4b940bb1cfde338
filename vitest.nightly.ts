import { defineConfig } from "vitest/config";
import { inRoot, resolving, withProcesses } from "./vitest.config.ts";

/** `npm run test:nightly`: what takes minutes. One file at a time, because some measure, and some use all of the CPU. */
export default defineConfig({
  ...resolving,
  test: {
    name: "nightly",
    include: [
      "**/*.nightly.test.ts",
      "**/convergence.services.test.ts",
      "**/feed-readers.services.test.ts",
      "**/fuzz.services.test.ts",
      "packages/feed/src/deliver/random.services.test.ts",
      "packages/http/src/partners/limit-partners.test.ts",
      "apps/ingest/src/body/decode-body.test.ts",
      "packages/schema/{src,scripts}/**/*.test.ts",
      "tests/chaos/fold-against-oracle.test.ts",
      "tests/fuzz/envelopes.test.ts",
      "tests/e2e/restore.test.ts",
    ],
    // Without bundles, programs start as they are built.
    env: {
      CONVERGENCE_RUNS: "500",
      FEED_RUNS: "100",
      FEED_SEEDS: "20",
      FUZZ_CONNECTIONS: "2000",
      RANDOM_RUNS: "10",
      RESTORED_BOOKINGS: "5000",
      BUNDLES: "",
    },
    fileParallelism: false,
    ...withProcesses,
    globalSetup: [inRoot("scripts/build-before-tests.ts"), ...withProcesses.globalSetup],
  },
});

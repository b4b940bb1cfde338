import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * `npm run mutate`: changes the code in small ways, one at a time, and runs the tests that need no services against each.
 * It fails when fewer than 90 % of the changes are noticed. README.md lists those that are not.
 */
export default {
  mutate: [
    "packages/bookings/src/fold.ts",
    "packages/bookings/src/settle-keys.ts",
    "packages/queue/src/retry-policy.ts",
    "packages/runtime/src/graceful-shutdown.ts",
    "apps/ingest/src/body/decode-body.ts",
    "apps/ingest/src/body/held-by-double.ts",
    "apps/ingest/src/body/kept-whole.ts",
    "apps/ingest/src/limits/limit-partners.ts",
    "apps/ingest/src/body/parse-json-exactly.ts",
    "apps/ingest/src/limits/take-turns.ts",
    "apps/worker/src/deliver/describe-fault.ts",
    "apps/worker/src/apply/plan-booking.ts",
    "apps/worker/src/deliver/wait-out-outage.ts",
  ],
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "tests/mutation/vitest.config.ts" },
  // No such file: of ours Stryker would make a copy with an interface that TypeScript 7 no longer has.
  tsconfigFile: "none",
  // Outside, so that neither the tests nor Biome find the copies of themselves.
  tempDirName: join(tmpdir(), "booking-events-mutation"),
  // What a run or a build has left here, and may belong to somebody else.
  ignorePatterns: [".data", ".turbo", "dist", "partners.json"],
  coverageAnalysis: "perTest",
  // Some tests wait for timers: on a busy machine a change would count as noticed, since its tests took too long.
  concurrency: 1,
  reporters: ["clear-text"],
  clearTextReporter: { allowEmojis: false, logTests: false },
  thresholds: { high: 100, low: 95, break: 90 },
};

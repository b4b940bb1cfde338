import { tmpdir } from "node:os";
import { join } from "node:path";

/** For `npm run mutate`: see README.md. */
export default {
  mutate: [
    "packages/bookings/src/fold.ts",
    "packages/bookings/src/plan-booking.ts",
    "packages/bookings/src/refold.ts",
    "packages/bookings/src/find-repeats.ts",
    "packages/feed/src/deliver/{back-off,booking-queues,breaker,decide,filter,finder,lease-watch}.ts",
    "packages/feed/src/deliver/{parking,pending-progress,turns,under-way}.ts",
    "packages/operations/src/restore/{describe-restore,plan-restore,summarise-restore}.ts",
    "packages/queue/src/events/retry-policy.ts",
    "packages/runtime/src/graceful-shutdown.ts",
    "apps/ingest/src/body/decode-body.ts",
    "packages/schema/src/json/exact-double.ts",
    "packages/schema/src/json/lossless-json.ts",
    "packages/schema/src/normalise/{airport-code,country,currency,date,email,flag,language,name-key}.ts",
    "packages/schema/src/normalise/{normalise-booking,phone,tidy-number,time-zone}.ts",
    "packages/schema/src/warnings/value-warnings.ts",
    "packages/http/src/partners/limit-partners.ts",
    "packages/schema/src/json/parse-json-exactly.ts",
    "apps/ingest/src/load/take-turns.ts",
    "apps/worker/src/outages/classify-fault.ts",
    "apps/worker/src/outages/wait-out-outage.ts",
  ],
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "tests/mutation/vitest.config.ts" },
  // Stryker would copy ours through an interface that TypeScript 7 no longer has, so this names no file.
  tsconfigFile: "none",
  // Outside the repository: the tests and Biome must not find the copies.
  tempDirName: join(tmpdir(), "booking-events-mutation"),
  // Left by a run or a build. Another user may own them.
  ignorePatterns: [".data", ".turbo", "dist", "partners.json"],
  coverageAnalysis: "perTest",
  // Some tests wait for timers. On a busy machine they would time out, and the change would count as noticed.
  concurrency: 1,
  reporters: ["clear-text"],
  clearTextReporter: { allowEmojis: false, logTests: false },
  thresholds: { high: 100, low: 95, break: 90 },
};

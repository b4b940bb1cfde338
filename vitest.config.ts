import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defaultExclude, defineConfig } from "vitest/config";
import { LongestFirst } from "./scripts/longest-first.ts";

// A workspace package's source rather than its dist, so that tests need no build. The rest are Vite's defaults for
// servers, which a list of one's own replaces.
const conditions = ["@booking-events/source", "module", "node", "development|production"];

const needServices = ["**/*.services.test.ts"];
const needProcesses = ["tests/e2e/**/*.test.ts", "tests/**/*.services.test.ts"];
const takeMinutes = ["**/*.nightly.test.ts"];

export const resolving = {
  resolve: { conditions },
  // Of the tests, and of the files in `globalSetup`.
  environments: { ssr: { resolve: { conditions } }, __vitest__: { resolve: { conditions } } },
};

export const inRoot = (file: string) => fileURLToPath(new URL(file, import.meta.url));

const withServices = {
  globalSetup: [inRoot("tests/harness/shared-services.ts")],
  testTimeout: 30_000,
  hookTimeout: 60_000,
};

export const withProcesses = {
  ...withServices,
  // They start processes, and wait until dead ones are noticed. A busy machine needs long for both, and for a page.
  testTimeout: 120_000,
  expect: { poll: { timeout: 20_000 } },
};

export default defineConfig({
  ...resolving,
  test: {
    // More than the CPUs, because tests of processes mostly wait. The PostgreSQL that all share has connections for a
    // dozen files at once.
    maxWorkers: Math.min(availableParallelism() + 2, 12),
    sequence: { sequencer: LongestFirst },
    // To load the modules again for each file is a third of what tests with services execute. So a test must leave
    // nothing behind that others see.
    isolate: false,
    // Also of the programs that tests start.
    env: { NODE_COMPILE_CACHE: inRoot("node_modules/.cache/compiled") },
    restoreMocks: true,
    unstubEnvs: true,
    unstubGlobals: true,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          // For a busy machine: no test asserts how long something takes.
          testTimeout: 30_000,
          include: ["**/*.test.ts"],
          exclude: [...defaultExclude, ...needServices, ...needProcesses, ...takeMinutes],
        },
      },
      {
        extends: true,
        test: {
          name: "services",
          include: needServices,
          exclude: [...defaultExclude, ...needProcesses, ...takeMinutes],
          ...withServices,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: needProcesses,
          exclude: [...defaultExclude, ...takeMinutes],
          ...withProcesses,
        },
      },
    ],
  },
});

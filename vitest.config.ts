import { availableParallelism } from "node:os";
import { fileURLToPath } from "node:url";
import { defaultExclude, defineConfig } from "vitest/config";

// A workspace package's source rather than its dist, so that tests need no build. The rest are Vite's defaults for
// servers, which a list of one's own replaces.
const conditions = ["@booking-events/source", "module", "node", "development|production"];

const needServices = ["**/*.services.test.ts"];
const needBuiltApps = ["tests/e2e/**/*.test.ts", "tests/**/*.services.test.ts"];
const takeMinutes = ["**/*.nightly.test.ts"];

export const resolving = {
  resolve: { conditions },
  // Of the tests, and of the files in `globalSetup`.
  environments: { ssr: { resolve: { conditions } }, __vitest__: { resolve: { conditions } } },
};

const inRoot = (file: string) => fileURLToPath(new URL(file, import.meta.url));

const withServices = {
  globalSetup: [inRoot("tests/harness/shared-services.ts")],
  testTimeout: 30_000,
  hookTimeout: 60_000,
};

export const withBuiltApps = {
  ...withServices,
  // They start processes, and wait until dead ones are noticed. A busy machine needs long for both.
  testTimeout: 120_000,
  globalSetup: [inRoot("scripts/build-before-tests.ts"), ...withServices.globalSetup],
};

export default defineConfig({
  ...resolving,
  test: {
    // One more than the CPUs, because tests of outages mostly wait. The PostgreSQL that all share has connections for a
    // dozen files at once.
    maxWorkers: Math.min(availableParallelism() + 1, 12),
    // To load the modules again for each file is a third of what tests with services execute. So a test must leave
    // nothing behind that others see.
    isolate: false,
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
          exclude: [...defaultExclude, ...needServices, ...needBuiltApps, ...takeMinutes],
        },
      },
      {
        extends: true,
        test: {
          name: "services",
          include: needServices,
          exclude: [...defaultExclude, ...needBuiltApps, ...takeMinutes],
          ...withServices,
        },
      },
      {
        extends: true,
        test: {
          name: "e2e",
          include: needBuiltApps,
          exclude: [...defaultExclude, ...takeMinutes],
          ...withBuiltApps,
        },
      },
    ],
  },
});

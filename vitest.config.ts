import { fileURLToPath } from "node:url";
import { defaultExclude, defineConfig } from "vitest/config";

// A workspace package's source rather than its dist, so that tests need no build. The rest are Vite's defaults for
// servers, which a list of one's own replaces.
const conditions = ["@booking-events/source", "module", "node", "development|production"];

const needServices = ["**/*.services.test.ts", "tests/e2e/**/*.test.ts"];
const takeMinutes = ["**/*.nightly.test.ts"];

export const resolving = { resolve: { conditions }, ssr: { resolve: { conditions } } };

export const withServices = {
  globalSetup: [fileURLToPath(new URL("tests/harness/shared-services.ts", import.meta.url))],
  testTimeout: 30_000,
  hookTimeout: 60_000,
};

export default defineConfig({
  ...resolving,
  test: {
    // Redis and PostgreSQL need a part of a small machine too.
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["**/*.test.ts"],
          exclude: [...defaultExclude, ...needServices, ...takeMinutes],
        },
      },
      {
        extends: true,
        test: {
          name: "services",
          include: needServices,
          exclude: [...defaultExclude, ...takeMinutes],
          ...withServices,
        },
      },
    ],
  },
});

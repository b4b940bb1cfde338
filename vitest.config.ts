import { defaultExclude, defineConfig } from "vitest/config";

// A workspace package's source rather than its dist, so that tests need no build. The rest are Vite's defaults for
// servers, which a list of one's own replaces.
const conditions = ["@booking-events/source", "module", "node", "development|production"];

const needServices = ["**/*.services.test.ts", "e2e/**/*.test.ts"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Redis and PostgreSQL need a part of a small machine too.
    maxWorkers: 2,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: ["**/*.test.ts"],
          exclude: [...defaultExclude, ...needServices],
        },
      },
      {
        extends: true,
        test: {
          name: "services",
          include: needServices,
          exclude: defaultExclude,
          globalSetup: ["scripts/test-services.ts"],
          testTimeout: 30_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});

import config from "./stryker.config.mjs";

/** For one file, which only tests with PostgreSQL run: see README.md. */
export default {
  ...config,
  mutate: [],
  vitest: { configFile: "tests/mutation/services.vitest.config.ts" },
};

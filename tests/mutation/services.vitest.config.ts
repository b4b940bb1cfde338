import { defineConfig } from "vitest/config";
import { inRoot, resolving, withProcesses } from "../../vitest.config.ts";

/** The tests with PostgreSQL of deliveries and restores. They start no processes. */
export default defineConfig({
  ...resolving,
  root: inRoot("."),
  test: {
    ...withProcesses,
    include: [
      "packages/feed/src/deliver/{batches,deliver,filter,leases,outage,role}.services.test.ts",
      "packages/operations/src/restore/*.services.test.ts",
    ],
  },
});

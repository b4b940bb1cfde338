import { defineConfig } from "vitest/config";
import { resolving, withBuiltApps } from "./vitest.config.ts";

/** `npm run test:nightly`: what takes minutes. One at a time, since it measures, or keeps the machine busy. */
export default defineConfig({
  ...resolving,
  test: { name: "nightly", include: ["**/*.nightly.test.ts"], fileParallelism: false, ...withBuiltApps },
});

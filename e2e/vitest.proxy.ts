import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const conditions = ["@booking-events/source", "module", "node", "development|production"];

/** `pnpm check:proxy`: apart from `npm test`, since it needs a Caddy, which not every system has a package of. */
export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ["e2e/proxy.check.ts"],
    globalSetup: [fileURLToPath(new URL("../scripts/test-services.ts", import.meta.url))],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});

import { defineConfig } from "vitest/config";
import { resolving, withBuiltApps } from "../../vitest.config.ts";

/** `npm run check:proxy`: not part of `npm test`, because it needs Caddy, which some systems have no package of. */
export default defineConfig({ ...resolving, test: { include: ["tests/e2e/proxy.check.ts"], ...withBuiltApps } });

import { defineConfig } from "vitest/config";
import { resolving, withBuiltApps } from "../../vitest.config.ts";

/** `npm run check:proxy`: apart from `npm test`, since it needs a Caddy, which not every system has a package of. */
export default defineConfig({ ...resolving, test: { include: ["tests/e2e/proxy.check.ts"], ...withBuiltApps } });

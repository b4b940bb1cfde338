/** `npm run verify`: like `npm test`, without the tests that need Redis or PostgreSQL. */
import { runChecks } from "./checks.ts";
import { stopRequested } from "./stop-signals.ts";

const stop = stopRequested({ force: () => process.exit(130) });
process.exit(await runChecks(["--project", "unit", ...process.argv.slice(2)], stop));

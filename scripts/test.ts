/** `npm test`: format, lint, types, unused code, build, and every test, against a real Redis and PostgreSQL. */
import { runChecks } from "./checks.ts";
import { findOrInstallRedis, installFaketime, installPrometheus } from "./install.ts";
import { showProblem } from "./progress.ts";
import { stopRequested } from "./stop-signals.ts";

const stop = stopRequested({ force: () => process.exit(130) });
try {
  const { version } = await findOrInstallRedis({ say: console.log, signal: stop });
  await installFaketime({ say: console.log, signal: stop });
  await installPrometheus({ say: console.log, signal: stop });
  const programs = process.env["POSTGRES_PROGRAMS"];
  const postgres = programs ? `the PostgreSQL in ${programs}` : "the embedded PostgreSQL";
  console.log(`The tests use ${version} and ${postgres}, each on a free port and with data of its own.`);
  process.exit(await runChecks(process.argv.slice(2), stop));
} catch (error) {
  if (stop.aborted) process.exit(130);
  showProblem(error);
  process.exit(1);
}

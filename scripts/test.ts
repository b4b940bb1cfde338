/** `npm test`: format, lint, types, unused code, and every test, against a real Redis and PostgreSQL. */
import { runChecks } from "./checks.ts";
import { findOrInstallRedis } from "./install.ts";
import { say, showProblem } from "./progress.ts";
import { stopRequested } from "./stop-signals.ts";

const stop = stopRequested({ force: () => process.exit(130) });
try {
  process.exit(await runChecks(process.argv.slice(2), stop, installServers));
} catch (error) {
  if (stop.aborted) process.exit(130);
  showProblem(error);
  process.exit(1);
}

/** A check that fails meanwhile does not end it: to interrupt dpkg can break the machine's packages. */
async function installServers(): Promise<void> {
  const { version } = await findOrInstallRedis({ say, signal: stop });
  const programs = process.env["POSTGRES_PROGRAMS"];
  const postgres = programs ? `the PostgreSQL in ${programs}` : "the embedded PostgreSQL";
  say(`The tests use ${version} and ${postgres}, each on a free port and with data of its own.`);
}

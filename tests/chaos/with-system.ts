import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AppName } from "./fault-plan.ts";
import { type System, type SystemOptions, startSystem } from "./start-system.ts";

interface RunOptions<Name extends AppName> extends Omit<SystemOptions<Name>, "dir" | "onCrash"> {
  /** Keeps data and logs of a run that has not passed, and says where. */
  keepsEvidence: boolean;
  say: (line: string) => void;
}

/**
 * One run on a system of its own, which is stopped afterwards, however the run ends.
 *
 * @param run is given a list to which apps are added that end by themselves
 */
export async function withSystem<Name extends AppName, Report extends { passed: boolean }>(
  options: RunOptions<Name>,
  run: (system: System<Name>, crashes: readonly string[]) => Promise<Report>,
): Promise<Report> {
  const { say, signal, keepsEvidence } = options;
  const dir = await mkdtemp(join(tmpdir(), "booking-events-chaos-"));
  // PostgreSQL's own user must get to its data.
  await chmod(dir, 0o711);
  let keeps = false;
  try {
    const crashes: string[] = [];
    const system = await startSystem({ ...options, dir, onCrash: (what) => crashes.push(what) });
    try {
      const report = await run(system, crashes);
      keeps = keepsEvidence && !report.passed;
      return report;
    } finally {
      if (signal.aborted) say("Stopping.");
      await system.stop();
    }
  } finally {
    if (keeps) say(`Data and logs of the run: ${dir}`);
    else await rm(dir, { recursive: true, force: true });
  }
}

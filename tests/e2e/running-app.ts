import { type AppProcess, builtApps, fromSource, startApp } from "@booking-events/harness/app-process";

/** One of the built apps as a process, as in production. */
export type RunningApp = AppProcess;

/**
 * @param environment all that the app sees, apart from the ports and PATH
 * @param options.entry another entry point, run from source
 */
export function runApp(
  name: "ingest" | "worker",
  environment: Record<string, string>,
  options: { entry?: string } = {},
): Promise<RunningApp> {
  return startApp(options.entry === undefined ? builtApps[name] : fromSource(options.entry), environment, {
    name,
    // Every secret of these tests begins with the first; every piece of a guest's data contains the second.
    neverPrinted: /a-secret-of|canary/i,
    // For speed, the PostgreSQL that tests share runs without fsync. The worker reports that and works on.
    toleratedProblems: /^PostgreSQL may lose/,
  });
}

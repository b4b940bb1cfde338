import { type AppProcess, builtApps, fromSource, startApp } from "@booking-events/harness/app-process";

/** One of the built apps as a process of its own, as production runs it. */
export type RunningApp = AppProcess;

/**
 * @param environment is all that the app sees, apart from the ports and PATH
 * @param options.entry composes the app in another way; runs from source
 */
export function runApp(
  name: "ingest" | "worker",
  environment: Record<string, string>,
  options: { entry?: string } = {},
): Promise<RunningApp> {
  return startApp(options.entry === undefined ? builtApps[name] : fromSource(options.entry), environment, {
    name,
    // Every secret of these tests begins like the first, and what stands for a guest's data holds the second.
    neverPrinted: /a-secret-of|canary/i,
    // The PostgreSQL that tests share has no fsync, for speed. The worker says so, and goes on.
    toleratedProblems: /^PostgreSQL may lose/,
  });
}

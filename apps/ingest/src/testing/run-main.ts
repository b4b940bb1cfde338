import { waitFor } from "@booking-events/harness";
import { type AppProcess, fromSource, startApp } from "@booking-events/harness/app-process";

/** `main.ts` running as a process. */
export type RunningMain = AppProcess;

/** The resources of the process. */
export interface ProcessResources {
  /** V8's heap limit. A process that needs more ends. */
  heapMiB?: number;
  /** The soft and the hard limit of file descriptors. */
  openFiles?: number;
  /** A file that replaces standard output, so the log cannot be read from the process. */
  logFile?: string;
}

/** @param environment all variables of the process except PATH and the ports, which it may override */
export function runMain(environment: Record<string, string>, resources: ProcessResources = {}): Promise<RunningMain> {
  const { heapMiB, openFiles, logFile } = resources;
  const heap = heapMiB === undefined ? [] : [`--max-old-space-size=${heapMiB}`];
  const limit = openFiles === undefined ? "" : `ulimit -n ${openFiles}; `;
  const log = logFile === undefined ? "" : ` > ${logFile}`;
  return startApp([...heap, ...fromSource("apps/ingest/src/main.ts")], environment, {
    name: "ingest",
    wrapper: ["sh", "-c", `${limit}exec "$@"${log}`, "sh"],
    // All secrets and guests' data in these tests contain this word.
    neverPrinted: /canary/i,
  });
}

/** @param environment as for {@link runMain} */
export async function startMain(
  environment: Record<string, string>,
  resources?: ProcessResources,
): Promise<RunningMain> {
  const running = await runMain(environment, resources);
  await waitFor(() => {
    if (running.child.exitCode !== null) throw new Error(`It ended:\n${running.output()}`);
    return running.logLines().some(({ msg }) => msg === "ready");
  });
  return running;
}

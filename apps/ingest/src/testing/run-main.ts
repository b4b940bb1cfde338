import { waitFor } from "@booking-events/harness";
import { type AppProcess, fromSource, startApp } from "@booking-events/harness/app-process";

/** `main.ts` as a process of its own. */
export type RunningMain = AppProcess;

/** What the process may have. */
export interface Means {
  /** Of V8. A process that needs more ends. */
  heapMiB?: number;
  /** The soft and the hard limit of file descriptors. */
  openFiles?: number;
  /** A file in place of standard output, so that its log can't be looked at. */
  logFile?: string;
}

/** @param environment is all that the process sees, apart from the ports and PATH; it may name its own ports */
export function runMain(environment: Record<string, string>, means: Means = {}): Promise<RunningMain> {
  const heap = means.heapMiB === undefined ? [] : [`--max-old-space-size=${means.heapMiB}`];
  const limit = means.openFiles === undefined ? "" : `ulimit -n ${means.openFiles}; `;
  const log = means.logFile === undefined ? "" : ` > ${means.logFile}`;
  return startApp([...heap, ...fromSource("apps/ingest/src/main.ts")], environment, {
    name: "ingest",
    wrapper: ["sh", "-c", `${limit}exec "$@"${log}`, "sh"],
    // Secrets and guests' data of these tests have this in them.
    neverPrinted: /canary/i,
  });
}

/** @param environment as for {@link runMain} */
export async function startMain(environment: Record<string, string>, means?: Means): Promise<RunningMain> {
  const running = await runMain(environment, means);
  await waitFor(() => {
    if (running.child.exitCode !== null) throw new Error(`It ended:\n${running.output()}`);
    return running.logLines().some(({ msg }) => msg === "ready");
  });
  return running;
}

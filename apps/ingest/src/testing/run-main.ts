import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { freePort, waitFor } from "@booking-events/harness";

/** Secrets and guests' data of these tests have this in them. */
const neverPrinted = /canary/i;

/** `main.ts` as a process of its own. */
export interface RunningMain {
  child: ChildProcess;
  port: number;
  adminPort: number;
  /** All that it has written so far, to both outputs. */
  output(): string;
  logLines(): Record<string, unknown>[];
  readiness(): Promise<{ status: number; body: unknown }>;
  metrics(): Promise<string>;
  /**
   * Resolves with the exit code, or the signal that ended the process; rejects when it has printed something that it
   * must not.
   */
  exited: Promise<number | NodeJS.Signals>;
}

const main = fileURLToPath(new URL("../main.ts", import.meta.url));

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
export async function runMain(environment: Record<string, string>, means: Means = {}): Promise<RunningMain> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const heap = means.heapMiB === undefined ? [] : [`--max-old-space-size=${means.heapMiB}`];
  const limit = means.openFiles === undefined ? "" : `ulimit -n ${means.openFiles}; `;
  const log = means.logFile === undefined ? "" : ` > ${means.logFile}`;
  const command = [process.execPath, ...heap, "--conditions=@booking-events/source", main];
  const child = spawn("sh", ["-c", `${limit}exec "$@"${log}`, "sh", ...command], {
    env: {
      PATH: process.env["PATH"],
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      ...environment,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const adminUrl = `http://127.0.0.1:${adminPort}`;
  return {
    child,
    port,
    adminPort,
    output: () => output,
    logLines: () => output.split("\n").flatMap((line) => (line.startsWith("{") ? [JSON.parse(line)] : [])),
    async readiness() {
      const response = await fetch(`${adminUrl}/readyz`);
      return { status: response.status, body: await response.json() };
    },
    metrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    // Not "exit": the output may come after it.
    exited: once(child, "close").then(([code, signal]) => {
      if (neverPrinted.test(output)) throw new Error(`Ingest has printed a secret or a guest's data:\n${output}`);
      return code ?? signal;
    }),
  };
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

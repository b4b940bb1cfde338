import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { freePort, waitFor } from "@booking-events/harness";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Every secret of these tests begins like the first, and what stands for a guest's data holds the second. */
const neverPrinted = /a-secret-of|canary/i;

/** One of the built apps as a process of its own, as production runs it. */
export interface RunningApp {
  name: string;
  process: ChildProcess;
  adminUrl: string;
  /** Of ingest. */
  url: string;
  /** All that it has printed so far. */
  output(): string;
  readiness(): Promise<{ status: number; body: { ready?: boolean; problems?: string[] } }>;
  untilReady(): Promise<void>;
  /**
   * Sends the signal and resolves with the exit code, or the signal that ended the process.
   *
   * @throws when the app has printed something that it must not, see {@link neverPrinted}
   */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals | null>;
}

/**
 * @param environment is all that the app sees, apart from the ports and PATH
 * @param options.entry composes the app in another way; runs from source
 */
export async function runApp(
  name: "ingest" | "worker",
  environment: Record<string, string>,
  options: { entry?: string } = {},
): Promise<RunningApp> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const entry =
    options.entry === undefined
      ? [`apps/${name}/dist/main.js`]
      : ["--conditions=@booking-events/source", options.entry];
  const child = spawn(process.execPath, entry, {
    cwd: root,
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
  for (const stream of [child.stdout, child.stderr]) stream?.setEncoding("utf8").on("data", (text) => (output += text));
  // Not "exit": the output may come after it.
  const exited = once(child, "close") as Promise<[number | null, NodeJS.Signals | null]>;
  const adminUrl = `http://127.0.0.1:${adminPort}`;

  const app: RunningApp = {
    name,
    process: child,
    adminUrl,
    url: `http://127.0.0.1:${port}`,
    output: () => output,
    async readiness() {
      const response = await fetch(`${adminUrl}/readyz`);
      return { status: response.status, body: (await response.json()) as { ready?: boolean; problems?: string[] } };
    },
    untilReady: () =>
      waitFor(
        async () => {
          if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${output}`);
          const { status, body } = await app.readiness();
          if (status !== 200 && !isDisposable(body.problems))
            throw new Error(`${name} is not ready: ${JSON.stringify(body)}\n${output}`);
          return true;
        },
        { timeoutMs: 30_000 },
      ),
    async stop(signal = "SIGTERM") {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      const [code, endedBy] = await exited;
      if (neverPrinted.test(output)) throw new Error(`${name} has printed a secret or a guest's data:\n${output}`);
      return code ?? endedBy;
    },
  };
  return app;
}

/** The PostgreSQL that tests share has no fsync, for speed. The worker says so, and goes on. */
function isDisposable(problems: string[] = []): boolean {
  return problems.length > 0 && problems.every((problem) => problem.startsWith("PostgreSQL may lose"));
}

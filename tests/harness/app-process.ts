import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "@booking-events/scripts/ports";
import { bundleProgram } from "./bundle-program.ts";
import { waitFor } from "./wait-for.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** The arguments with which Node runs the built apps. */
export const builtApps = {
  ingest: ["apps/ingest/dist/main.js"],
  worker: ["apps/worker/dist/main.js"],
  lookup: ["apps/lookup/dist/main.js"],
  webhooks: ["apps/webhooks/dist/main.js"],
  console: ["apps/console/dist/main.js"],
  ops: ["apps/ops/dist/main.js"],
} as const;

/** The arguments with which Node runs a program from source. */
export function fromSource(path: string): string[] {
  // Node 24.0 to 24.2 still call type stripping experimental.
  return ["--disable-warning=ExperimentalWarning", "--conditions=@booking-events/source", path];
}

/** One of the apps, or a program that replaces it, as a process of its own. */
export interface AppProcess {
  name: string;
  child: ChildProcess;
  port: number;
  url: string;
  adminPort: number;
  adminUrl: string;
  isRunning(): boolean;
  /** All that it has printed so far. */
  output(): string;
  logLines(): Record<string, unknown>[];
  readiness(): Promise<Readiness>;
  /** @throws when it ends instead */
  untilReady(): Promise<void>;
  metrics(): Promise<string>;
  /** Resolves with the exit code or the signal; rejects when it has printed what it must not. */
  exited: Promise<number | NodeJS.Signals>;
  /** Sends the signal unless the process has ended. Resolves and rejects as `exited`. */
  stop(signal?: NodeJS.Signals): Promise<number | NodeJS.Signals>;
}

interface Readiness {
  status: number;
  body: { ready?: boolean; problems?: string[] };
}

interface Options {
  name?: string;
  /** A command that runs the command after it, in the same process. */
  wrapper?: readonly string[];
  /** With "ignore", a log line costs the app no more than a write, and the reader nothing. */
  stdout?: "pipe" | "ignore";
  neverPrinted?: RegExp;
  /** An app that reports no other problems than these counts as ready. */
  toleratedProblems?: RegExp;
}

const readyTimeoutMs = 30_000;

/**
 * @param program the arguments of Node
 * @param environment all that the app sees, apart from PATH, HOST, free ports and {@link compileCache}; it may name other
 *   ports
 */
export async function startApp(
  program: readonly string[],
  environment: Record<string, string>,
  { name = program.at(-1) ?? "", wrapper = [], stdout = "pipe", neverPrinted, toleratedProblems }: Options = {},
): Promise<AppProcess> {
  const ports = { PORT: String(await freePort()), ADMIN_PORT: String(await freePort()) };
  const { PORT, ADMIN_PORT } = { ...ports, ...environment };
  const started = await bundleProgram(program);
  const child = spawnApp(started, { ...ports, ...environment }, { wrapper, stdio: ["ignore", stdout, "pipe"] });
  const output = collectOutput(child);
  // Not "exit": the output may come after it.
  const exited = once(child, "close").then(([code, signal]) => {
    if (neverPrinted?.test(output())) throw new Error(`${name} has printed a secret or a guest's data:\n${output()}`);
    return code ?? signal;
  });
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  const adminUrl = `http://127.0.0.1:${ADMIN_PORT}`;

  async function readiness(): Promise<Readiness> {
    const response = await fetch(`${adminUrl}/readyz`);
    return { status: response.status, body: (await response.json()) as Readiness["body"] };
  }

  /** A program that replaces an app may answer 200 with any body. */
  async function checkReady(): Promise<void> {
    const response = await fetch(`${adminUrl}/readyz`);
    if (response.ok) return;
    const { problems = [] } = (await response.json()) as Readiness["body"];
    if (problems.length > 0 && problems.every((problem) => toleratedProblems?.test(problem))) return;
    throw new Error(`${name} is not ready: ${problems.join("; ")}\n${output()}`);
  }

  return {
    name,
    child,
    port: Number(PORT),
    url: `http://127.0.0.1:${PORT}`,
    adminPort: Number(ADMIN_PORT),
    adminUrl,
    exited,
    readiness,
    isRunning,
    output,
    logLines() {
      const lines = output().split("\n").slice(0, -1); // The last line may still be incomplete.
      return lines.filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
    },
    async untilReady() {
      const ended = exited.then((code) => {
        throw new Error(`${name} ended with ${code}:\n${output()}`);
      });
      await Promise.race([waitFor(checkReady, { timeoutMs: readyTimeoutMs }), ended]);
    },
    metrics: async () => (await fetch(`${adminUrl}/metrics`)).text(),
    stop(signal = "SIGTERM") {
      if (isRunning()) child.kill(signal);
      return exited;
    },
  };
}

function collectOutput({ stdout, stderr }: ChildProcess): () => string {
  let output = "";
  for (const stream of [stdout, stderr]) {
    stream?.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  return () => output;
}

/** Tests start hundreds of processes, and to compile the same modules takes up to half of each start. */
export const compileCache = { NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compiled") };

/** Starts the process without watching it. It does not outlive ours. */
export function spawnApp(
  program: readonly string[],
  environment: Record<string, string>,
  { wrapper = [], ...options }: SpawnOptions & Pick<Options, "wrapper">,
): ChildProcess {
  const [file = "", ...args] = [...wrapper, process.execPath, ...program];
  const env = { PATH: process.env["PATH"], HOST: "127.0.0.1", ...compileCache, ...environment };
  const child = spawn(file, args, { ...options, cwd: root, env });
  running.add(child);
  child.once("exit", () => running.delete(child));
  return child;
}

const running = new Set<ChildProcess>();
process.on("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});

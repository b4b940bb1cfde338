import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { writeNewPartners } from "@booking-events/harness/partners-file";
import { freePort } from "@booking-events/scripts/ports";
import { cpuTimeUs } from "./cpu-time.ts";
import { onCpus } from "./cpus.ts";
import type { Bench } from "./scenario.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** What Node is given to run it. Ours run as they are built; what else there is runs from source. */
export const programs = {
  ours: ["apps/ingest/dist/main.js"],
  worker: ["apps/worker/dist/main.js"],
} as const;

export function baseline(name: string): string[] {
  return [
    "--conditions=@booking-events/source",
    "--disable-warning=ExperimentalWarning",
    `tests/bench/baselines/${name}.ts`,
  ];
}

/** A process under test. */
export interface Contestant {
  /** Of its HTTP server. */
  url: string;
  pid: number;
  cpuUs(): number | undefined;
  /** Of our own processes: 99 % of all delays of the event loop since this was asked last were shorter. */
  loopDelayP99Ms(): Promise<number>;
  stop(): Promise<void>;
}

const readyLimitMs = 30_000;

/** Starts a process and waits until it says on ADMIN_PORT that it is ready. */
export async function startContestant(
  { cpus, profileDir }: Bench,
  program: readonly string[],
  environment: Record<string, string>,
): Promise<Contestant> {
  const [port, adminPort] = [await freePort(), await freePort()];
  const profiling = profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`];
  const [file, args] = onCpus(cpus.underTest, process.execPath, [...profiling, ...program]);
  const child = spawn(file, args, {
    cwd: root,
    env: {
      PATH: process.env["PATH"],
      NODE_ENV: "production",
      HOST: "127.0.0.1",
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      ...environment,
    },
    // Its log goes where it costs the process a write for each line, and nobody anything else.
    stdio: ["ignore", "ignore", "pipe"],
  });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  const exited = once(child, "exit");
  const { pid = -1 } = child;
  await untilReady(`http://127.0.0.1:${adminPort}/readyz`, () => {
    if (child.exitCode !== null) throw new Error(`${program.at(-1)} ended by itself:\n${errors}`);
  });
  return {
    url: `http://127.0.0.1:${port}`,
    pid,
    cpuUs: () => cpuTimeUs(pid),
    async loopDelayP99Ms() {
      const metrics = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
      return 1_000 * Number(/^nodejs_eventloop_lag_p99_seconds\{.*\} (.*)$/m.exec(metrics)?.[1]);
    },
    async stop() {
      if (child.exitCode === null) child.kill("SIGTERM");
      await exited;
    },
  };
}

async function untilReady(url: string, check: () => void): Promise<void> {
  const giveUpAtMs = Date.now() + readyLimitMs;
  for (;;) {
    check();
    const isReady = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (isReady) return;
    if (Date.now() > giveUpAtMs) throw new Error(`${url} does not become ready.`);
    await sleep(20);
  }
}

/** @returns where the partners file of one measurement is, and the secrets in it */
export function writePartners(
  { dir }: Bench,
  limits: Parameters<typeof writeNewPartners>[1],
): { file: string; secretOf: Record<string, string> } {
  const file = join(dir, `partners-${randomBytes(4).toString("hex")}.json`);
  return { file, secretOf: writeNewPartners(file, limits) };
}

let prefixes = 0;
/** A queue of its own for each measurement. */
export function newQueuePrefix(): string {
  prefixes += 1;
  return `{bench-${process.pid}-${prefixes}}`;
}

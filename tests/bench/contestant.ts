import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type AppProcess, fromSource, startApp } from "@booking-events/harness/app-process";
import { writeNewPartners } from "@booking-events/harness/partners-file";
import { cpuTimeUs } from "./cpu-time.ts";
import { onCpus } from "./cpus.ts";
import type { Bench } from "./scenario.ts";

/** What Node is given to run a baseline. */
export function baseline(name: string): string[] {
  return fromSource(`tests/bench/baselines/${name}.ts`);
}

/** A process under test. */
export interface Contestant extends AppProcess {
  cpuUs(): number | undefined;
  /** Of our own processes: 99 % of all delays of the event loop since this was asked last were shorter. */
  loopDelayP99Ms(): Promise<number>;
}

/** Starts a process and waits until it says on ADMIN_PORT that it is ready. */
export async function startContestant(
  { cpus, profileDir }: Bench,
  program: readonly string[],
  environment: Record<string, string>,
): Promise<Contestant> {
  const profiling = profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`];
  const app = await startApp(
    [...profiling, ...program],
    { NODE_ENV: "production", ...environment },
    { wrapper: onCpus(cpus.underTest), stdout: "ignore" },
  );
  await app.untilReady();
  return {
    ...app,
    cpuUs: () => cpuTimeUs(app.child.pid ?? -1),
    async loopDelayP99Ms() {
      return 1_000 * Number(/^nodejs_eventloop_lag_p99_seconds\{.*\} (.*)$/m.exec(await app.metrics())?.[1]);
    },
  };
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

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type AppProcess, fromSource, startApp } from "@booking-events/harness/app-process";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";
import { cpuTimeUs } from "./cpu-time.ts";
import { onCpus } from "./cpus.ts";
import type { Bench } from "./scenario.ts";

/** The worker's own default. */
export const defaultConcurrency = 3_000;

/** @returns the arguments with which Node runs a baseline */
export function baseline(name: string): string[] {
  return fromSource(`tests/bench/baselines/${name}.ts`);
}

/** @returns the arguments with which Node runs the built app of the other clone, by variant; empty without a clone */
export function fromOtherClone({ otherClone }: Bench, [path]: readonly [string]): Record<string, string[]> {
  return otherClone === undefined ? {} : { "other clone": [join(otherClone, path)] };
}

export interface ProcessUnderTest extends AppProcess {
  pid: number;
  cpuUs(): number;
}

/** Starts a process and waits until it reports on ADMIN_PORT that it is ready. */
export async function startUnderTest(
  { cpus, profileDir }: Bench,
  program: readonly string[],
  environment: Record<string, string>,
): Promise<ProcessUnderTest> {
  const profiling = profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`];
  const app = await startApp(
    [...profiling, ...program],
    { NODE_ENV: "production", ...environment },
    { wrapper: onCpus(cpus.underTest), stdout: "ignore" },
  );
  await app.untilReady();
  const { pid = -1 } = app.child;
  return { ...app, pid, cpuUs: () => cpuTimeUs(pid) ?? Number.NaN };
}

/** Starts ingest, or a baseline of it, with two partners that have no limit. */
export async function startIngest(
  bench: Bench,
  program: readonly string[],
  queuePrefix: string,
): Promise<ProcessUnderTest & { createUrl: string; otherCreateUrl: string }> {
  const file = join(bench.dir, `partners-${randomBytes(4).toString("hex")}.json`);
  const { acme, zenith } = writeNewPartners(file, { acme: noLimit, zenith: noLimit });
  const ingest = await startUnderTest(bench, program, {
    REDIS_URL: bench.services.redisUrl,
    QUEUE_PREFIX: queuePrefix,
    PARTNERS_FILE: file,
  });
  const createUrlOf = (secret = "") => `${ingest.url}/booking-event/create/${secret}`;
  return { ...ingest, createUrl: createUrlOf(acme), otherCreateUrl: createUrlOf(zenith) };
}

/** Starts a worker, or a baseline of it. */
export function startWorker(
  bench: Bench,
  program: readonly string[],
  options: { queuePrefix: string; databaseUrl: string; concurrency?: number },
): Promise<ProcessUnderTest> {
  const { queuePrefix, databaseUrl, concurrency = defaultConcurrency } = options;
  return startUnderTest(bench, program, {
    REDIS_URL: bench.services.redisUrl,
    DATABASE_URL: databaseUrl,
    QUEUE_PREFIX: queuePrefix,
    CONCURRENCY: String(concurrency),
    LOG_LEVEL: "warn",
  });
}

let prefixes = 0;
/** A separate queue for each measurement. */
export function newQueuePrefix(): string {
  prefixes += 1;
  return `{bench-${process.pid}-${prefixes}}`;
}

import { readFile } from "node:fs/promises";
import { setTimeout as wait } from "node:timers/promises";
import { Counter, Gauge, type Logger, parsePartnersFile, type Registry, StartError } from "@booking-events/service";
import { createPartnerRegistry, type PartnerRegistry } from "./partner-registry.ts";

export interface PartnersFileWatch {
  /** Of the newest valid version of the file. */
  registry(): PartnerRegistry;
  /** Why the file as it is now is not in force, for an operator. Empty: it is. */
  problems(): string[];
  stop(): void;
}

const defaultIntervalMs = 1_000;
const maxProblemsTold = 5;

/**
 * Reads the partners file, and again every second: a change is in force without a restart. While the file is invalid
 * or gone the last valid version stays in force, since one wrong comma must not lock every partner out.
 *
 * It reads instead of asking the file system for changes, because those are not told for a mounted Kubernetes secret
 * or a network file system, and compares the text, because times of change are too coarse to trust.
 *
 * @throws StartError when the file can't be used at the start, where there is no last valid version
 */
export async function watchPartnersFile(options: {
  path: string;
  logger: Logger;
  metrics: Registry;
  intervalMs?: number;
}): Promise<PartnersFileWatch> {
  const { path, logger, intervalMs = defaultIntervalMs } = options;
  const { reloads, stale } = createMetrics(options.metrics);
  const stopping = new AbortController();
  let last = await readPartners(path);
  if (last.problem !== undefined) throw new StartError(last.problem);
  let registry = last.registry;
  logInForce();

  async function reload(): Promise<void> {
    const next = await readPartners(path, last);
    if (next === last) return;
    last = next;
    reloads.inc({ result: next.problem === undefined ? "loaded" : "refused" });
    stale.set(next.problem === undefined ? 0 : 1);
    if (next.problem === undefined) {
      registry = next.registry;
      logInForce();
    } else {
      logger.error({ problem: next.problem }, "partners file refused: the last valid version stays in force");
    }
  }

  function logInForce(): void {
    const { partnerCount: partners, secretCount: secrets } = registry;
    // A file without partners is valid, and refuses everyone: worth more than a line at level info.
    logger[secrets === 0 ? "warn" : "info"]({ partners, secrets }, "partners file in force");
  }

  void repeat(reload, intervalMs, stopping.signal);
  return {
    registry: () => registry,
    problems: () => (last.problem === undefined ? [] : [last.problem]),
    stop: () => stopping.abort(),
  };
}

function createMetrics(metrics: Registry) {
  return {
    reloads: new Counter({
      name: "ingest_partners_file_reloads_total",
      help: "Changes of the partners file, by whether the new version is in force (loaded) or not (refused).",
      labelNames: ["result"],
      registers: [metrics],
    }),
    stale: new Gauge({
      name: "ingest_partners_file_stale",
      help: "1 while the partners file is invalid or gone and its last valid version is in force.",
      registers: [metrics],
    }),
  };
}

/** One version of the file, valid or not. `text` is undefined when it could not be read. */
type Version =
  | { text: string; registry: PartnerRegistry; problem?: undefined }
  | { text: string | undefined; registry?: undefined; problem: string };

/** @returns `last` itself if nothing changed since */
async function readPartners(path: string, last?: Version): Promise<Version> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const problem = `The partners file ${path} can't be read (${code}). Create it with "pnpm ops partners add <id>", or set PARTNERS_FILE to its path.`;
    return problem === last?.problem ? last : { text: undefined, problem };
  }
  if (text === last?.text) return last;
  const result = parsePartnersFile(text);
  if (result.success) return { text, registry: createPartnerRegistry(result.file) };
  const problems = result.problems.slice(0, maxProblemsTold).join("; ");
  return { text, problem: `The partners file ${path} is not valid: ${problems}. Correct it.` };
}

async function repeat(work: () => Promise<void>, intervalMs: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await wait(intervalMs, undefined, { signal }).catch(() => {});
    if (!signal.aborted) await work();
  }
}

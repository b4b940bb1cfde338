import { createPartnerRegistry, type PartnerRegistry, parsePartnersFile } from "@booking-events/partners";
import { Counter, Gauge, type Logger, type Registry, repeat } from "@booking-events/runtime";
import { createPatientReader, describeReadError, type ReadText, readRegularFile } from "./read-regular-file.ts";

export interface PartnersFileWatch {
  /** Of the newest valid version of the file; without partners until there is one. */
  registry(): PartnerRegistry;
  /** Why no partner is known, for an operator. Empty: some are. */
  problems(): string[];
  /** Why the file as it is now is not in force, though an earlier version is. Empty: it is. */
  warnings(): string[];
  stop(): void;
}

const defaultIntervalMs = 1_000;
const defaultReadLimitMs = 2_000;
const maxProblemsTold = 5;

/**
 * Reads the partners file, and again every second: a change is in force without a restart. While the file is invalid
 * or gone the last valid version stays in force, since one wrong comma must not lock every partner out. Where there is
 * none, nobody is known, which is our trouble and not the partners'.
 *
 * It reads instead of asking the file system for changes, because those are not told for a mounted Kubernetes secret
 * or a network file system, and compares the text, because times of change are too coarse to trust.
 *
 * Resolves when the file was read, or is not to be read for now.
 */
export async function watchPartnersFile(options: {
  path: string;
  logger: Logger;
  metrics: Registry;
  intervalMs?: number;
  readLimitMs?: number;
  readText?: ReadText;
}): Promise<PartnersFileWatch> {
  const { path, logger, intervalMs = defaultIntervalMs, readLimitMs = defaultReadLimitMs } = options;
  const { reloads, stale } = createMetrics(options.metrics);
  const readText = createPatientReader(options.readText ?? readRegularFile, readLimitMs);
  const stopping = new AbortController();
  let registry = createPartnerRegistry({ partners: [] });
  let last: Version | undefined;

  async function load(): Promise<void> {
    const next = await readPartners(path, readText, last);
    if (next === last || stopping.signal.aborted) return;
    const isReload = last !== undefined;
    last = next;
    if (isReload) reloads.inc({ result: next.problem === undefined ? "loaded" : "refused" });
    stale.set(next.problem === undefined ? 0 : 1);
    if (next.problem === undefined) {
      registry = next.registry;
      logInForce();
    } else {
      const consequence =
        registry.partnerCount === 0 ? "events are refused until it is valid" : "the last valid version stays in force";
      logger.error({ problem: next.problem }, `partners file refused: ${consequence}`);
    }
  }

  function logInForce(): void {
    const { partnerCount: partners, secretCount: secrets } = registry;
    // A file without partners or secrets is valid, and refuses everyone: worth more than a line at level info.
    logger[secrets === 0 ? "warn" : "info"]({ partners, secrets }, "partners file in force");
  }

  const currentProblems = () => (last?.problem === undefined ? [] : [last.problem]);
  const isEmpty = () => registry.partnerCount === 0;
  const noPartners = `The partners file ${path} has no partners. Add them with "npm run ops -- partners add <id>".`;

  await load();
  void repeat(load, intervalMs, stopping.signal);
  return {
    registry: () => registry,
    problems() {
      if (!isEmpty()) return [];
      return last?.problem === undefined ? [noPartners] : currentProblems();
    },
    warnings: () => (isEmpty() ? [] : currentProblems()),
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
async function readPartners(path: string, readText: ReadText, last: Version | undefined): Promise<Version> {
  let text: string;
  try {
    text = await readText(path);
  } catch (error) {
    const problem = `The partners file ${path} can't be read (${describeReadError(error)}). Create it with "npm run ops -- partners add <id>", or set PARTNERS_FILE to its path.`;
    return problem === last?.problem ? last : { text: undefined, problem };
  }
  if (text === last?.text) return last;
  const result = parsePartnersFile(text);
  if (result.success) return { text, registry: createPartnerRegistry(result.file) };
  const problems = result.problems.slice(0, maxProblemsTold).join("; ");
  return { text, problem: `The partners file ${path} is not valid: ${problems}. Correct it.` };
}

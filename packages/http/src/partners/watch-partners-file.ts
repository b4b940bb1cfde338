import { createPartnerRegistry, type Partner, type PartnerRegistry, parsePartnersFile } from "@booking-events/partners";
import { Counter, Gauge, type Logger, type Registry, repeat } from "@booking-events/runtime";
import { createReaderWithTimeout, describeReadError, type ReadText, readRegularFile } from "./read-regular-file.ts";

export interface PartnersFileWatch {
  /** The partners of the newest valid version of the file. Empty until there is one. */
  registry(): PartnerRegistry;
  /** Why no partners are known, for an operator. Empty if some are. */
  problems(): string[];
  /** Why the current file is not in use although an earlier version is, for an operator. Empty if it is in use. */
  warnings(): string[];
  stop(): void;
}

const defaultIntervalMs = 1_000;
const defaultReadLimitMs = 2_000;
const maxReportedProblems = 5;

/**
 * Reads the partners file every second, so changes apply without a restart. While the file is invalid or missing, the
 * last valid version stays in use, because a single wrong comma must not lock out every partner. If there has been no
 * valid version, requests get 503, because the problem is ours and not the partners'.
 *
 * It polls because file systems do not report changes of mounted Kubernetes secrets or on network file systems. It
 * compares the text because modification times are too coarse.
 *
 * Resolves when the file has been read or the read has failed.
 */
export async function watchPartnersFile(options: {
  /** The prefix of the metrics' names. */
  app: string;
  path: string;
  logger: Logger;
  metrics: Registry;
  /** Called with each valid version. */
  onLoaded?: (partners: readonly Partner[]) => void;
  /** Whether the secret with a digest was revoked. Default: as the file says. */
  isRevoked?: (sha256: string) => boolean;
  intervalMs?: number;
  readLimitMs?: number;
  readText?: ReadText;
}): Promise<PartnersFileWatch> {
  const { path, logger, intervalMs = defaultIntervalMs, readLimitMs = defaultReadLimitMs } = options;
  const { reloads, stale } = createMetrics(options);
  const readText = createReaderWithTimeout(options.readText ?? readRegularFile, readLimitMs);
  const stopping = new AbortController();
  let registry = createPartnerRegistry({ partners: [] });
  let last: Version | undefined;

  async function load(): Promise<void> {
    const next = await readPartners({ path, readText, isRevoked: options.isRevoked }, last);
    if (next === last || stopping.signal.aborted) return;
    const isReload = last !== undefined;
    last = next;
    if (isReload) reloads.inc({ result: next.problem === undefined ? "loaded" : "refused" });
    stale.set(next.problem === undefined ? 0 : 1);
    if (next.problem === undefined) {
      registry = next.registry;
      options.onLoaded?.(registry.partners);
      logLoaded();
    } else {
      const consequence =
        registry.partnerCount === 0 ? "requests are refused until it is valid" : "the last valid version stays in use";
      logger.error({ problem: next.problem }, `partners file not loaded: ${consequence}`);
    }
  }

  function logLoaded(): void {
    const { partnerCount: partners, secretCount: secrets } = registry;
    // A file without partners or secrets is valid but refuses everyone, so it deserves a warning.
    logger[secrets === 0 ? "warn" : "info"]({ partners, secrets }, "partners file loaded");
  }

  const currentProblems = () => (last?.problem === undefined ? [] : [last.problem]);
  const isEmpty = () => registry.partnerCount === 0;
  const noPartners = `The partners file ${path} has no partners. Add them with "ops partners add <id>".`;

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

function createMetrics({ app, metrics }: { app: string; metrics: Registry }) {
  return {
    reloads: new Counter({
      name: `${app}_partners_file_reloads_total`,
      help:
        "Changes to the partners file, by result: loaded, or refused because the new version is invalid or " +
        "missing.",
      labelNames: ["result"],
      registers: [metrics],
    }),
    stale: new Gauge({
      name: `${app}_partners_file_stale`,
      help: "1 while the partners file is invalid or missing.",
      registers: [metrics],
    }),
  };
}

/** A version of the file, valid or not. `text` is undefined if the file could not be read. */
type Version =
  | { text: string; registry: PartnerRegistry; problem?: undefined }
  | { text: string | undefined; registry?: undefined; problem: string };

/** @returns `last` itself if nothing has changed */
async function readPartners(
  options: { path: string; readText: ReadText; isRevoked: ((sha256: string) => boolean) | undefined },
  last: Version | undefined,
): Promise<Version> {
  const { path, readText, isRevoked } = options;
  let text: string;
  try {
    text = await readText(path);
  } catch (error) {
    const reason = describeReadError(error);
    const remedy =
      reason === "ENOENT"
        ? 'Create it with "ops partners add <id>", or set PARTNERS_FILE to its path.'
        : "Let this user read it, or set PARTNERS_FILE to another path.";
    const problem = `The partners file ${path} cannot be read (${reason}). ${remedy}`;
    return problem === last?.problem ? last : { text: undefined, problem };
  }
  if (text === last?.text) return last;
  const result = parsePartnersFile(text);
  if (result.success) return { text, registry: createPartnerRegistry(result.file, isRevoked) };
  const problems = result.problems.slice(0, maxReportedProblems).join("; ");
  return { text, problem: `The partners file ${path} is not valid: ${problems}. Correct it.` };
}

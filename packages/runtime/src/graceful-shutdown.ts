import type { Logger } from "./logger.ts";
import { DeadlineExceeded, withDeadline } from "./with-deadline.ts";

/** One step of the way down. It is given up after `limitMs`, and the next one starts. */
export interface ShutdownPhase {
  name: string;
  limitMs: number;
  run: () => Promise<void>;
}

/** What a shutdown needs of the process that it ends. */
export interface EndableProcess {
  on(event: "SIGTERM" | "SIGINT", listener: (signal: NodeJS.Signals) => void): unknown;
  on(event: "uncaughtException" | "unhandledRejection", listener: (error: unknown) => void): unknown;
  exit(exitCode: 0 | 1): void;
}

/** A terminal and a supervisor may both pass on one Ctrl-C: what comes sooner is the same signal. */
const secondSignalAfterMs = 1_000;

export interface GracefulShutdown {
  /** True from the first signal on: readiness says no, so that no new work is sent here. */
  isShuttingDown(): boolean;
  /** Goes down as for a signal, with exit code 1: something happened that the process can't go on after. */
  fail(reason: string, error: unknown): void;
}

/**
 * Takes the process down in named phases on SIGTERM or SIGINT, or when something failed that nobody caught.
 *
 * Exit code 0: every phase finished. 1: a phase ran out of time, or failed, or the reason was a failure. A second
 * signal, at least a second after the first, ends the process at once.
 *
 * @param options.timeoutMs the limit of all phases together
 */
export function installGracefulShutdown(options: {
  phases: ShutdownPhase[];
  timeoutMs: number;
  logger: Logger;
  process?: EndableProcess;
}): GracefulShutdown {
  const { phases, timeoutMs, logger, process = globalThis.process } = options;
  let startedAtMs: number | undefined;

  async function shutDown(exitCode: 0 | 1): Promise<void> {
    startedAtMs = Date.now();
    const endAtMs = startedAtMs + timeoutMs;
    let worstCode = exitCode;
    for (const phase of phases) {
      const limitMs = Math.min(phase.limitMs, Math.max(endAtMs - Date.now(), 0));
      if (!(await runPhase(phase, limitMs, logger))) worstCode = 1;
    }
    logger.info({ exitCode: worstCode, durationMs: Date.now() - startedAtMs }, "stopped");
    process.exit(worstCode);
  }

  function onSignal(signal: NodeJS.Signals): void {
    if (startedAtMs === undefined) {
      logger.info({ signal, timeoutMs }, "stopping");
      void shutDown(0);
    } else if (Date.now() - startedAtMs >= secondSignalAfterMs) {
      logger.warn({ signal }, "stopping at once: second signal");
      process.exit(1);
    }
  }

  function fail(reason: string, error: unknown): void {
    logger.fatal({ err: error }, reason);
    if (startedAtMs === undefined) void shutDown(1);
  }

  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("uncaughtException", (error) => fail("stopping: an error that nobody caught", error));
  process.on("unhandledRejection", (error) => fail("stopping: a rejection that nobody handled", error));
  return { isShuttingDown: () => startedAtMs !== undefined, fail };
}

/** @returns whether the phase finished in time */
async function runPhase(phase: ShutdownPhase, limitMs: number, logger: Logger): Promise<boolean> {
  try {
    await withDeadline(phase.run(), limitMs);
    logger.debug({ phase: phase.name }, "shutdown phase done");
    return true;
  } catch (error) {
    if (error instanceof DeadlineExceeded)
      logger.error({ phase: phase.name, limitMs }, "shutdown phase ran out of time");
    else logger.error({ phase: phase.name, err: error }, "shutdown phase failed");
    return false;
  }
}

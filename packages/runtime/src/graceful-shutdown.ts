import type { Logger } from "./logger.ts";
import { DeadlineExceeded, withDeadline } from "./with-deadline.ts";

/** The part of a process that a shutdown uses. */
export interface EndableProcess {
  on(event: "SIGTERM" | "SIGINT", listener: (signal: NodeJS.Signals) => void): unknown;
  on(event: "uncaughtException" | "unhandledRejection", listener: (error: unknown) => void): unknown;
  exit(exitCode: 0 | 1): void;
}

/** Of the time. The rest is for closing connections, which is fast unless the other side is unreachable. */
const finishingShare = 0.8;
/** A terminal and a supervisor may both pass on the same Ctrl-C, so a second signal within this time is ignored. */
const secondSignalAfterMs = 1_000;

export interface GracefulShutdown {
  /** Returns true from the first signal on. The process then reports that it is not ready, so it gets no new work. */
  isShuttingDown(): boolean;
  /** Shuts down as after a signal, but with exit code 1, because of an error from which the process cannot recover. */
  fail(reason: string, error: unknown): void;
}

/**
 * Shuts the process down on SIGTERM, SIGINT or an uncaught error: first work in progress is finished, with four fifths
 * of the time; then the connections are closed, including the health server's. A phase that takes longer is abandoned.
 *
 * The exit code is 0 if every phase finished, and 1 if a phase timed out or failed, or if an error was the reason. A
 * second signal, at least a second after the first, ends the process immediately.
 *
 * @param options.delayMs how long after a signal the phases begin, so that a proxy can notice that the process is not
 *   ready. An error ends the delay, since the process must not serve on in an unknown state
 * @param options.timeoutMs the limit for both phases together
 */
export function installGracefulShutdown(options: {
  finishWork: () => Promise<void>;
  closeConnections: () => Promise<void>;
  delayMs?: number;
  timeoutMs: number;
  logger: Logger;
  process?: EndableProcess;
}): GracefulShutdown {
  const { finishWork, closeConnections, delayMs = 0, timeoutMs, logger, process = globalThis.process } = options;
  const finishingMs = finishingShare * timeoutMs;
  let startedAtMs: number | undefined;
  let delayTimer: NodeJS.Timeout | undefined;
  let havePhasesBegun = false;

  async function runPhases(exitCode: 0 | 1): Promise<void> {
    havePhasesBegun = true;
    clearTimeout(delayTimer);
    const isFinished = await runPhase("finish work in progress", finishWork, finishingMs, logger);
    const isClosed = await runPhase("close connections", closeConnections, timeoutMs - finishingMs, logger);
    const worstCode = isFinished && isClosed ? exitCode : 1;
    logger.info({ exitCode: worstCode, durationMs: Date.now() - (startedAtMs ?? 0) }, "stopped");
    process.exit(worstCode);
  }

  function onSignal(signal: NodeJS.Signals): void {
    if (startedAtMs === undefined) {
      logger.info({ signal, timeoutMs: delayMs + timeoutMs }, "stopping");
      startedAtMs = Date.now();
      if (delayMs === 0) void runPhases(0);
      else delayTimer = setTimeout(() => void runPhases(0), delayMs);
    } else if (Date.now() - startedAtMs >= secondSignalAfterMs) {
      logger.warn({ signal }, "stopping immediately: second signal");
      process.exit(1);
    }
  }

  function fail(reason: string, error: unknown): void {
    logger.fatal({ err: error }, reason);
    startedAtMs ??= Date.now();
    if (!havePhasesBegun) void runPhases(1);
  }

  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
  process.on("uncaughtException", (error) => fail("stopping: uncaught exception", error));
  process.on("unhandledRejection", (error) => fail("stopping: unhandled rejection", error));
  return { isShuttingDown: () => startedAtMs !== undefined, fail };
}

/** @returns whether the phase finished in time */
async function runPhase(phase: string, run: () => Promise<void>, limitMs: number, logger: Logger): Promise<boolean> {
  try {
    await withDeadline(run(), limitMs);
    logger.debug({ phase }, "shutdown phase done");
    return true;
  } catch (error) {
    if (error instanceof DeadlineExceeded) logger.error({ phase, limitMs }, "shutdown phase timed out");
    else logger.error({ phase, err: error }, "shutdown phase failed");
    return false;
  }
}

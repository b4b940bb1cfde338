import type { Logger } from "./logger.ts";
import { DeadlineExceeded, withDeadline } from "./with-deadline.ts";

/** A phase of a shutdown. It is abandoned after `limitMs`, and the next one starts. */
export interface ShutdownPhase {
  name: string;
  limitMs: number;
  run: () => Promise<void>;
}

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
 * Returns the shutdown phases of every process: first work in progress is finished, with four fifths of the time; then
 * the connections are closed, including the health server's.
 */
export function shutdownPhases(
  timeoutMs: number,
  { finishWork, closeConnections }: { finishWork: () => Promise<void>; closeConnections: () => Promise<void> },
): ShutdownPhase[] {
  return [
    { name: "finish work in progress", limitMs: timeoutMs * finishingShare, run: finishWork },
    { name: "close connections", limitMs: timeoutMs * (1 - finishingShare), run: closeConnections },
  ];
}

/**
 * Shuts the process down in named phases on SIGTERM, SIGINT or an uncaught error.
 *
 * The exit code is 0 if every phase finished, and 1 if a phase timed out or failed, or if an error was the reason. A
 * second signal, at least a second after the first, ends the process immediately.
 *
 * @param options.delayMs how long after a signal the phases begin, so that a proxy can notice that the process is not
 *   ready. An error ends the delay, since the process must not serve on in an unknown state
 * @param options.timeoutMs the limit for all phases together
 */
export function installGracefulShutdown(options: {
  phases: ShutdownPhase[];
  delayMs?: number;
  timeoutMs: number;
  logger: Logger;
  process?: EndableProcess;
}): GracefulShutdown {
  const { phases, delayMs = 0, timeoutMs, logger, process = globalThis.process } = options;
  let startedAtMs: number | undefined;
  let delayTimer: NodeJS.Timeout | undefined;
  let havePhasesBegun = false;

  async function runPhases(exitCode: 0 | 1): Promise<void> {
    havePhasesBegun = true;
    clearTimeout(delayTimer);
    const endAtMs = Date.now() + timeoutMs;
    let worstCode = exitCode;
    for (const phase of phases) {
      const limitMs = Math.min(phase.limitMs, Math.max(endAtMs - Date.now(), 0));
      if (!(await runPhase(phase, limitMs, logger))) worstCode = 1;
    }
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
async function runPhase(phase: ShutdownPhase, limitMs: number, logger: Logger): Promise<boolean> {
  try {
    await withDeadline(phase.run(), limitMs);
    logger.debug({ phase: phase.name }, "shutdown phase done");
    return true;
  } catch (error) {
    if (error instanceof DeadlineExceeded) logger.error({ phase: phase.name, limitMs }, "shutdown phase timed out");
    else logger.error({ phase: phase.name, err: error }, "shutdown phase failed");
    return false;
  }
}

import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { spawnApp } from "@booking-events/harness/app-process";
import type { AppName } from "./fault-plan.ts";

const restartDelayMs = 500;
const readyTimeoutMs = 5_000;
/** Four times their own time-out. A freeze may fall into it. */
const longestShutdownMs = 60_000;

export type SupervisedApp = ReturnType<typeof superviseApp>;

/**
 * Runs an app as a process of its own, and starts it again when it ends by itself, as any supervisor does.
 *
 * @param options.program what Node is given
 * @param options.environment is all that the app sees, apart from PATH
 * @param options.onCrash called when the process ends and nobody has asked for it, or does not end although asked
 */
export function superviseApp(options: {
  name: AppName;
  program: readonly string[];
  environment: Record<string, string>;
  adminPort: number;
  logPath: string;
  onCrash: (what: string) => void;
}) {
  const { name, program, adminPort, logPath, onCrash } = options;
  const environment = { ADMIN_PORT: String(adminPort), ...options.environment };
  const log = openSync(logPath, "a");
  let isStopping = false;
  let restartTimer: NodeJS.Timeout | undefined;
  let current = start();

  function start() {
    // In a process group of its own: a Ctrl-C in the terminal reaches only us.
    const child = spawnApp(program, environment, { detached: true, stdio: ["ignore", log, log] });
    const started = { child, isAskedToEnd: false, ended: once(child, "exit").then(restartAfterCrash) };
    return started;

    function restartAfterCrash([code, signal]: unknown[]): void {
      if (started.isAskedToEnd || isStopping) return;
      onCrash(`${name} ended by itself (${signal ?? `exit code ${code}`})`);
      restartTimer = setTimeout(() => {
        current = start();
      }, restartDelayMs);
    }
  }

  return {
    name,
    /** Of the process that runs now; undefined: it could not be started. */
    get pid() {
      return current.child.pid;
    },
    kill(signal: NodeJS.Signals): void {
      const { child } = current;
      if (signal !== "SIGSTOP" && signal !== "SIGCONT") current.isAskedToEnd = true;
      child.kill(signal);
      if (signal !== "SIGTERM") return;
      const tooLong = setTimeout(() => {
        onCrash(`${name} did not end within ${longestShutdownMs / 1_000} s of SIGTERM`);
        child.kill("SIGKILL");
      }, longestShutdownMs);
      child.once("exit", () => clearTimeout(tooLong));
    },
    /** Resolves when the process that runs now has ended. */
    ended: (): Promise<void> => current.ended,
    /** Starts it again after `kill` has ended it. */
    async restart(): Promise<void> {
      clearTimeout(restartTimer);
      if (!isStopping) current = start();
    },
    async isReady(): Promise<boolean> {
      const url = `http://127.0.0.1:${adminPort}/readyz`;
      return await fetch(url, { signal: AbortSignal.timeout(readyTimeoutMs) }).then(
        ({ ok }) => ok,
        () => false,
      );
    },
    /** Ends it for good. */
    async stop(): Promise<void> {
      isStopping = true;
      clearTimeout(restartTimer);
      current.child.kill("SIGKILL");
      await current.ended;
      closeSync(log);
    },
  };
}

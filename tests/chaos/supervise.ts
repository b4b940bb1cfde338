import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { spawnApp } from "@booking-events/harness/app-process";

/** One of the apps as a process of its own: whatever ends it, it runs again, as under any supervisor. */
export interface SupervisedApp {
  readonly name: string;
  /** Of the process that runs now; undefined: it could not be started. */
  readonly pid: number | undefined;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when the process that runs now has ended. */
  ended(): Promise<void>;
  /** Starts it again after an end that {@link kill} brought about. */
  restart(): Promise<void>;
  /** Does it say of itself that it does its work? */
  isReady(): Promise<boolean>;
  /** Ends for good. */
  stop(): Promise<void>;
}

const restartDelayMs = 500;
/** Three times what the apps give themselves, and more than a freeze in between takes. */
const longestGoodbyeMs = 60_000;

/**
 * @param options.args for Node
 * @param options.environment is all that the app sees, apart from PATH
 * @param options.onCrash told when the process ends, and nobody has asked for it; or does not end although asked
 */
export function superviseApp(options: {
  name: string;
  args: readonly string[];
  environment: Record<string, string>;
  adminPort: number;
  logPath: string;
  onCrash: (what: string) => void;
}): SupervisedApp {
  const { name, args, environment, adminPort, logPath, onCrash } = options;
  const log = openSync(logPath, "a");
  let isStopping = false;
  let child: ChildProcess;
  let end: Promise<unknown>;
  let endAskedFor: boolean;
  let restartTimer: NodeJS.Timeout | undefined;
  start();

  function start(): void {
    clearTimeout(restartTimer);
    const started = spawnApp(
      args,
      { ADMIN_PORT: String(adminPort), ...environment },
      // In a process group of its own: a Ctrl-C in the terminal reaches only us.
      { detached: true, stdio: ["ignore", log, log] },
    );
    child = started;
    endAskedFor = false;
    end = once(started, "exit").then(([code, signal]) => {
      if (endAskedFor || isStopping) return;
      onCrash(`${name} ended by itself (${signal ?? `exit code ${code}`})`);
      restartTimer = setTimeout(start, restartDelayMs);
    });
  }

  return {
    name,
    get pid() {
      return child.pid;
    },
    kill(signal) {
      if (signal !== "SIGSTOP" && signal !== "SIGCONT") endAskedFor = true;
      const asked = child;
      asked.kill(signal);
      if (signal !== "SIGTERM") return;
      const tooLong = setTimeout(() => {
        onCrash(`${name} did not end within ${longestGoodbyeMs / 1_000} s of SIGTERM`);
        asked.kill("SIGKILL");
      }, longestGoodbyeMs);
      asked.once("exit", () => clearTimeout(tooLong));
    },
    async ended() {
      await end;
    },
    async restart() {
      if (!isStopping) start();
    },
    async isReady() {
      try {
        const url = `http://127.0.0.1:${adminPort}/readyz`;
        return (await fetch(url, { signal: AbortSignal.timeout(5_000) })).ok;
      } catch {
        return false;
      }
    },
    async stop() {
      isStopping = true;
      clearTimeout(restartTimer);
      child.kill("SIGKILL");
      await end;
      closeSync(log);
    },
  };
}

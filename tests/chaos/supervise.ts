import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import { spawnApp } from "@booking-events/harness/app-process";
import type { ProcessName } from "./fault-plan.ts";
import type { FaultTarget } from "./inject-faults.ts";

const restartDelayMs = 500;
const readyTimeoutMs = 5_000;
/** Four times their own time-out. A freeze may fall into it. */
const longestShutdownMs = 60_000;

interface AppOptions {
  name: ProcessName;
  /** What Node is given. */
  program: readonly string[];
  /** All that the app sees, apart from PATH. */
  environment: Record<string, string>;
  host: string;
  port: number;
  adminPort: number;
  logPath: string;
  /** Called when the process ends and nobody has asked for it, or does not end although asked. */
  onCrash: (what: string) => void;
}

interface AppRun {
  child: ChildProcess;
  isAskedToEnd: boolean;
  ended: Promise<void>;
}

/** Runs an app as a process of its own, and starts it again when it ends by itself, as any supervisor does. */
export class SupervisedApp implements FaultTarget {
  readonly name: ProcessName;
  readonly #options: AppOptions;
  readonly #log: number;
  #isStopping = false;
  #restartTimer: NodeJS.Timeout | undefined;
  #current: AppRun;

  constructor(options: AppOptions) {
    this.name = options.name;
    this.#options = options;
    this.#log = openSync(options.logPath, "a");
    this.#current = this.#start();
  }

  /** Of the process that runs now; undefined: it could not be started. */
  get pid(): number | undefined {
    return this.#current.child.pid;
  }

  get host(): string {
    return this.#options.host;
  }

  get port(): number {
    return this.#options.port;
  }

  get adminPort(): number {
    return this.#options.adminPort;
  }

  kill(signal: NodeJS.Signals): void {
    const { child } = this.#current;
    if (signal !== "SIGSTOP" && signal !== "SIGCONT") this.#current.isAskedToEnd = true;
    child.kill(signal);
    if (signal !== "SIGTERM") return;
    const tooLong = setTimeout(() => {
      this.#options.onCrash(`${this.name} did not end within ${longestShutdownMs / 1_000} s of SIGTERM`);
      child.kill("SIGKILL");
    }, longestShutdownMs);
    child.once("exit", () => clearTimeout(tooLong));
  }

  /** Resolves when the process that runs now has ended. */
  ended(): Promise<void> {
    return this.#current.ended;
  }

  /** Starts it again after `kill` has ended it. */
  async restart(): Promise<void> {
    clearTimeout(this.#restartTimer);
    if (!this.#isStopping) this.#current = this.#start();
  }

  isReady(): Promise<boolean> {
    const url = `http://${this.host}:${this.adminPort}/readyz`;
    return fetch(url, { signal: AbortSignal.timeout(readyTimeoutMs) }).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  /** Ends it for good. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    clearTimeout(this.#restartTimer);
    this.#current.child.kill("SIGKILL");
    await this.#current.ended;
    closeSync(this.#log);
  }

  #start(): AppRun {
    const { program, host, port, adminPort } = this.#options;
    const addresses = { HOST: host, ADMIN_HOST: host, PORT: String(port), ADMIN_PORT: String(adminPort) };
    const environment = { ...this.#options.environment, ...addresses };
    // In a process group of its own: a Ctrl-C in the terminal reaches only us.
    const child = spawnApp(program, environment, { detached: true, stdio: ["ignore", this.#log, this.#log] });
    const run: AppRun = {
      child,
      isAskedToEnd: false,
      ended: once(child, "exit").then(([code, signal]) => {
        if (!run.isAskedToEnd && !this.#isStopping) this.#restartAfterCrash(signal ?? `exit code ${code}`);
      }),
    };
    return run;
  }

  #restartAfterCrash(how: string): void {
    this.#options.onCrash(`${this.name} ended by itself (${how})`);
    this.#restartTimer = setTimeout(() => {
      this.#current = this.#start();
    }, restartDelayMs);
  }
}

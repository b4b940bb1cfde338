import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, type WriteStream } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { logDir, root } from "./clone.ts";
import { recordProcess, signalFamily, stopProcess } from "./process-record.ts";
import { recordApp } from "./run-record.ts";
import { SetupProblem } from "./setup-problem.ts";

/** Ingest or worker, started from here: its log goes to a file, what needs attention also to the terminal. */
export interface AppProcess {
  readonly name: string;
  readonly adminPort: number;
  /** Resolves to how the process ended, such as "exit code 1". */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
  kill(): void;
  /** The last lines that it has written. */
  logTail(): string;
}

/** A little more than the apps give themselves, so that the one who says "too slow" is the one that knows at what. */
const STOP_TIMEOUT_MS = 20_000;
const READY_TIMEOUT_MS = 60_000;
const LOG_TAIL_LINES = 20;

export function startApp(options: {
  name: string;
  args: readonly string[];
  environment: NodeJS.ProcessEnv;
  adminPort: number;
  /** Is given each line that says something went wrong. */
  showLine: (line: string) => void;
}): AppProcess {
  const { name, args, environment, adminPort, showLine } = options;
  const logFile = join(logDir, `${name}.log`);
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...environment, ADMIN_PORT: String(adminPort) },
    // In a process group of its own: a Ctrl-C in the terminal reaches only us, and we stop everything in order.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (child.pid !== undefined) recordApp(child.pid);
  const record = child.pid === undefined ? undefined : recordProcess(child.pid);
  const log = createWriteStream(logFile, { flags: "a" });
  const lastLines: string[] = [];
  forEachLine(child, (line) => {
    log.write(`${line}\n`);
    lastLines.push(line);
    if (lastLines.length > LOG_TAIL_LINES) lastLines.shift();
    const text = attentionLine(name, line);
    if (text !== undefined) showLine(text);
  });

  return {
    name,
    adminPort,
    ended: endOf(child, log),
    stop: async () => {
      if (record) await stopProcess(record, { signal: "SIGTERM", timeoutMs: STOP_TIMEOUT_MS });
    },
    kill: () => {
      if (record) signalFamily(record, "SIGKILL");
    },
    logTail: () => lastLines.join("\n"),
  };
}

/** Resolves when the app says on its admin port that it is ready; rejects when it ends or takes too long. */
export async function untilReady(app: AppProcess, signal: AbortSignal): Promise<void> {
  const deadline = Date.now() + READY_TIMEOUT_MS;
  let endedHow: string | undefined;
  void app.ended.then((how) => {
    endedHow = how;
  });
  for (;;) {
    signal.throwIfAborted();
    if (endedHow !== undefined) throw new AppEnded(app, endedHow);
    const problem = await readinessProblem(app.adminPort);
    if (problem === undefined) return;
    if (Date.now() > deadline) {
      throw new SetupProblem(
        `${app.name} was not ready within ${READY_TIMEOUT_MS / 1000} s: ${problem}`,
        `Its log may say more: ${join(logDir, `${app.name}.log`)}`,
      );
    }
    await sleep(50);
  }
}

export class AppEnded extends SetupProblem {
  constructor(app: AppProcess, how: string) {
    const tail = app.logTail();
    super(
      `${app.name} ended by itself (${how}).${tail === "" ? "" : ` The end of its log:\n\n${tail}`}`,
      `Fix what the log names and start again. The whole log: .data/log/${app.name}.log`,
    );
  }
}

async function readinessProblem(adminPort: number): Promise<string | undefined> {
  try {
    const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`, { signal: AbortSignal.timeout(5_000) });
    const body = await response.text();
    return response.ok ? undefined : `it answers ${response.status} ${body}`;
  } catch {
    return "it does not answer yet";
  }
}

function forEachLine(child: ChildProcess, visit: (line: string) => void): void {
  for (const input of [child.stdout, child.stderr]) {
    if (input) createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }).on("line", visit);
  }
}

function endOf(child: ChildProcess, log: WriteStream): Promise<string> {
  return new Promise((resolve) => {
    const end = (how: string) => log.end(() => resolve(how));
    child.once("error", (error) => end(error.message));
    child.once("close", (code, signal) => end(signal ? `by ${signal}` : `exit code ${code}`));
  });
}

/** A log line as people read it, if it is a warning or worse; a line that is no log line, such as a crash, as it is. */
export function attentionLine(name: string, line: string): string | undefined {
  const entry = parseLogEntry(line);
  if (!entry) return line.trim() === "" ? undefined : `[${name}] ${line}`;
  const { level, time, msg, err, name: _name, pid: _pid, ...rest } = entry;
  if (level !== "warn" && level !== "error" && level !== "fatal") return undefined;
  const { type, code, message } = (err ?? {}) as Record<string, unknown>;
  const cause = [type, code, message].filter((part) => part !== undefined).join(" ");
  const details = Object.entries(rest).map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const clock = typeof time === "string" ? time.slice(11, 19) : "";
  return [`[${name}]`, clock, level, msg, cause && `(${cause})`, ...details].filter(Boolean).join(" ");
}

function parseLogEntry(line: string): Record<string, unknown> | undefined {
  if (!line.startsWith("{")) return undefined;
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

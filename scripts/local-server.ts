import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, createWriteStream, fstatSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { finished } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, isPortFree } from "./ports.ts";
import { type ProcessRecord, readRecord, saveRecord, signalFamily, stopProcess } from "./process-record.ts";
import { SetupProblem } from "./setup-problem.ts";

/** A server on the loopback address: a data service, or one of the apps. */
export interface LocalServer {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  /** Of the server's first process; another one after `restart`. */
  readonly pid: number;
  /** To the server and its child processes, so SIGSTOP freezes and SIGKILL ends all of it. */
  kill(signal: NodeJS.Signals): void;
  /** Starts it again on the same port and data, after stopping what still runs. Resolves when it answers. */
  restart(): Promise<void>;
  /** Stops it in good order, if it still runs. */
  stop(): Promise<void>;
  /** Resolves when the current process has ended, to the problem to show if nobody asked for it. */
  ended(): Promise<SetupProblem>;
}

/** What tells one server from another. */
export interface ServerKind {
  name: string;
  /** Holds the record of the running server. */
  dir: string;
  logPath: string;
  stopSignal: NodeJS.Signals;
  command(port: number): { file: string; args: string[]; uid?: number; gid?: number; env?: NodeJS.ProcessEnv };
  /** Resolves if the server answers and is the one that we started. A rejection with a SetupProblem is final. */
  ping(port: number): Promise<void>;
  url(port: number): string;
  /** A start that ended with this in the log is worth another try. */
  transientFailure?: RegExp;
  /** Gets each line that the server prints, besides the log. */
  onLine?: (line: string) => void;
  /** What else the user can do if it does not start. */
  alternative?: string;
}

interface StartOptions {
  /** Default: the port used last in this directory if it is free, else any free one. */
  port?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Recovering a large log after a crash takes long. A broken server ends at once, and needs no limit. */
const READY_TIMEOUT_MS = 120_000;
/** A little more than the apps allow themselves: their own messages say what was too slow. */
const STOP_TIMEOUT_MS = 20_000;
const START_ATTEMPTS_MAX = 20;
const LOG_TAIL_LINES = 20;

/** Starts a server, after stopping the one that an earlier run may have left behind in this directory. */
export async function startServer(kind: ServerKind, options: StartOptions = {}): Promise<LocalServer> {
  await stopLeftover(kind.dir, kind.stopSignal);
  let running = await launchUntilUp(kind, options.port ?? (await portFor(kind)), options);
  const { port } = running;
  const stop = () => stopProcess(running.record, { signal: kind.stopSignal, timeoutMs: STOP_TIMEOUT_MS });

  return {
    name: kind.name,
    url: kind.url(port),
    port,
    get pid() {
      return running.record.pid;
    },
    kill: (signal) => signalFamily(running.record, signal),
    restart: async () => {
      await stop();
      running = await launchUntilUp(kind, port, { ...options, port });
    },
    stop,
    ended: () => running.ended,
  };
}

/** Stops the server whose record is in this directory, if it runs. Never touches a process that may not be ours. */
export function stopLeftover(dir: string, signal: NodeJS.Signals): Promise<void> {
  return stopProcess(readRecord(recordFile(dir)), { signal, timeoutMs: STOP_TIMEOUT_MS });
}

/** Repeats an attempt until it succeeds. A SetupProblem is final, and so is `tooLate`, which gets the last failure. */
export async function untilAnswers(
  attempt: () => Promise<void>,
  options: { timeoutMs: number; tooLate: (lastFailure: unknown) => SetupProblem; signal?: AbortSignal | undefined },
): Promise<void> {
  const deadline = Date.now() + options.timeoutMs;
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      if (error instanceof SetupProblem) throw error;
      if (Date.now() > deadline) throw options.tooLate(error);
      await sleep(25);
    }
  }
}

interface RunningServer {
  port: number;
  record: ProcessRecord;
  ended: Promise<SetupProblem>;
}

async function launchUntilUp(kind: ServerKind, port: number, options: StartOptions): Promise<RunningServer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(kind, port, options.signal);
    } catch (error) {
      if (attempt === START_ATTEMPTS_MAX || options.signal?.aborted || !(error instanceof ServerEnded)) throw error;
      if (options.port === undefined && !(await isPortFree(port))) port = await freePort();
      else if (kind.transientFailure?.test(error.log)) await sleep(500);
      else throw error;
    }
  }
}

async function launch(kind: ServerKind, port: number, signal?: AbortSignal): Promise<RunningServer> {
  signal?.throwIfAborted();
  const { pid, ended } = spawnServer(kind, port);
  // At once, so that no server runs without a record.
  const record = pid === undefined ? undefined : saveRecord(recordFile(kind.dir), pid, { port });
  const over = new AbortController();
  const giveUp = (problem: unknown) => over.abort(problem);
  ended.then(giveUp, giveUp);
  try {
    await untilUp(kind, port, AbortSignal.any(signal ? [signal, over.signal] : [over.signal]));
    // It has answered, so it ran. If there is no record, it has ended since.
    if (!record) throw await ended;
    return { port, record, ended };
  } catch (error) {
    await stopProcess(record, { signal: kind.stopSignal, timeoutMs: STOP_TIMEOUT_MS });
    throw error;
  }
}

/**
 * In a process group of its own, because a Ctrl-C in the terminal must reach only us: we stop what uses the data first,
 * and the data last. Unless we read its lines, the server writes its log itself and does not depend on this process.
 */
function spawnServer(kind: ServerKind, port: number): { pid: number | undefined; ended: Promise<ServerEnded> } {
  const { file, args, ...options } = kind.command(port);
  const log = openSync(kind.logPath, "a");
  const logStart = fstatSync(log).size;
  const output = kind.onLine ? "pipe" : log;
  const child = spawn(file, args, { ...options, detached: true, stdio: ["ignore", output, output] });
  const logged = kind.onLine ? copyLines(child, log, kind.onLine) : closeSync(log);
  const ended = howItEnds(child).then(async (how) => {
    await logged;
    return new ServerEnded(kind, how, readFileSync(kind.logPath).subarray(logStart).toString());
  });
  return { pid: child.pid, ended };
}

/** Resolves when the child has closed its output and all of it is in the log. */
async function copyLines(child: ChildProcess, log: number, onLine: (line: string) => void): Promise<void> {
  const stream = createWriteStream("", { fd: log });
  for (const input of [child.stdout, child.stderr]) {
    if (input)
      createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY }).on("line", (line) => {
        stream.write(`${line}\n`);
        onLine(line);
      });
  }
  await once(child, "close").catch(() => {}); // An error means that it could not be started.
  stream.end();
  await finished(stream);
}

function untilUp(kind: ServerKind, port: number, signal?: AbortSignal): Promise<void> {
  const tooLate = (cause: unknown) =>
    new SetupProblem(
      `${kind.name} was not ready within ${READY_TIMEOUT_MS / 1000} s. ${cause}`,
      `Its log may say why: ${kind.logPath}`,
      { cause },
    );
  return untilAnswers(() => kind.ping(port), { timeoutMs: READY_TIMEOUT_MS, tooLate, signal });
}

async function howItEnds(child: ChildProcess): Promise<string> {
  try {
    const [code, signal] = await once(child, "close");
    return signal ? `by ${signal}` : `exit code ${code}`;
  } catch (error) {
    return String(error); // It could not be started.
  }
}

class ServerEnded extends SetupProblem {
  readonly log: string;

  constructor({ name, logPath, alternative }: ServerKind, how: string, log: string) {
    const tail = log.trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n  ");
    super(
      `${name} ended by itself (${how}).${tail === "" ? "" : ` The end of its log:\n\n  ${tail}`}`,
      `Fix what the log names (all of it: ${logPath}) and start again${alternative ? `; or ${alternative}` : ""}.`,
    );
    this.log = log;
  }
}

async function portFor(kind: ServerKind): Promise<number> {
  const lastUsed = readRecord<{ port: number }>(recordFile(kind.dir))?.port;
  return lastUsed !== undefined && (await isPortFree(lastUsed)) ? lastUsed : freePort();
}

function recordFile(dir: string): string {
  return join(dir, "server.json");
}

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort, isPortFree } from "./ports.ts";
import { type ProcessRecord, recordProcess, signalFamily, stopProcess } from "./process-record.ts";
import { SetupProblem } from "./setup-problem.ts";

/** A Redis or PostgreSQL that listens on the loopback address and keeps its data in one directory. */
export interface DataServer {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  /** Of the server's first process; another one after `restart`. */
  readonly pid: number;
  /** To the server and its child processes, so that SIGSTOP freezes and SIGKILL ends all of it. */
  kill(signal: NodeJS.Signals): void;
  /** Starts it again on the same port and data; what still runs is stopped first. Resolves when it answers. */
  restart(): Promise<void>;
  /** Stops it in good order, if it still runs. */
  stop(): Promise<void>;
  /** Resolves when the process that runs now has ended, whoever ended it. */
  ended(): Promise<void>;
  readonly logPath: string;
}

/** What tells a Redis from a PostgreSQL. */
export interface ServerKind {
  name: string;
  /** Where the record of the running server is. */
  dir: string;
  logPath: string;
  stopSignal: NodeJS.Signals;
  command(port: number): { file: string; args: string[]; uid?: number; gid?: number; env?: NodeJS.ProcessEnv };
  /** Resolves if the server answers and is the one with our password; rejects until then. A SetupProblem is final. */
  ping(port: number): Promise<void>;
  url(port: number): string;
  /** A start that ended with this in the log is worth another try. */
  transientFailure?: RegExp;
}

interface StartOptions {
  /** Without it: the port used last in this directory if it is free, else any free one. */
  port?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Recovering a large log after a crash takes its time; a server that is merely broken ends, and needs no limit. */
const READY_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 10_000;
const START_ATTEMPTS_MAX = 20;

/** Brings up a server, after stopping the one that an earlier run may have left behind in this directory. */
export async function startServer(kind: ServerKind, options: StartOptions = {}): Promise<DataServer> {
  await stopLeftover(kind.dir, kind.stopSignal);
  const port = options.port ?? (await portFor(kind));
  let running = await launchUntilUp(kind, port, options);

  return {
    name: kind.name,
    logPath: kind.logPath,
    url: kind.url(running.record.port),
    port: running.record.port,
    get pid() {
      return running.record.pid;
    },
    kill: (signal) => signalFamily(running.record, signal),
    restart: async () => {
      await stopLeftover(kind.dir, kind.stopSignal);
      running = await launchUntilUp(kind, running.record.port, { ...options, port: running.record.port });
    },
    stop: () => stopLeftover(kind.dir, kind.stopSignal),
    ended: () => running.ended,
  };
}

/**
 * Stops the server whose record is in this directory, if it runs. The record says which process it was, and when that
 * began: a process that is not certainly ours is never touched.
 */
export async function stopLeftover(dir: string, signal: NodeJS.Signals): Promise<void> {
  const record = readRecord(dir);
  if (record) await stopProcess(record, { signal, timeoutMs: STOP_TIMEOUT_MS });
}

interface ServerRecord extends ProcessRecord {
  port: number;
  /** Where the record was written. In a copy of the directory it names a server that is another's. */
  dir: string;
}

interface RunningServer {
  record: ServerRecord;
  ended: Promise<void>;
}

async function launchUntilUp(kind: ServerKind, port: number, options: StartOptions): Promise<RunningServer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(kind, port, options.signal);
    } catch (error) {
      if (attempt === START_ATTEMPTS_MAX || options.signal?.aborted || !(error instanceof EndedWhileStarting))
        throw error;
      if (options.port === undefined && !(await isPortFree(port))) port = await freePort();
      else if (kind.transientFailure?.test(error.log)) await sleep(500);
      else throw error;
    }
  }
}

async function launch(kind: ServerKind, port: number, signal?: AbortSignal): Promise<RunningServer> {
  signal?.throwIfAborted();
  const log = openSync(kind.logPath, "a");
  const logStart = fstatSync(log).size;
  const { file, args, ...spawnOptions } = kind.command(port);
  // Detached: a Ctrl-C in the terminal must reach the programs that use the data first, and the data last. The log is
  // a file rather than a pipe, so that the server does not depend on this process in any way.
  const child = spawn(file, args, { ...spawnOptions, cwd: "/", detached: true, stdio: ["ignore", log, log] });
  closeSync(log);
  // Before anything else can happen, so that no server is left without a record.
  const record = child.pid === undefined ? undefined : writeRecord(kind.dir, child.pid, port);
  const ended = endOf(child);

  const hasEnded = ended.then((how) => {
    throw new EndedWhileStarting(kind.name, how, readFileSync(kind.logPath).subarray(logStart).toString());
  });
  hasEnded.catch(() => {});
  try {
    await Promise.race([hasEnded, untilUp(kind, port, signal)]);
  } catch (error) {
    if (record) await stopProcess(record, { signal: kind.stopSignal, timeoutMs: STOP_TIMEOUT_MS });
    throw error;
  }
  if (!record) throw new Error(`${kind.name} answers, but its process was never seen`);
  return { record, ended: ended.then(() => {}) };
}

async function untilUp(kind: ServerKind, port: number, signal?: AbortSignal): Promise<void> {
  const tooLate = (cause: unknown) =>
    new SetupProblem(
      `${kind.name} did not answer within ${READY_TIMEOUT_MS / 1000} s.`,
      `Its log says why: ${kind.logPath}`,
      { cause },
    );
  await untilAnswers(() => kind.ping(port), { timeoutMs: READY_TIMEOUT_MS, tooLate, signal });
}

/** Tries until it works. A SetupProblem is final, and so is `tooLate`, made from the last failure. */
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

function endOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal ? `ended by ${signal}` : `exit code ${code}`));
  });
}

class EndedWhileStarting extends SetupProblem {
  readonly log: string;

  constructor(name: string, how: string, log: string) {
    const end = log.trimEnd().split("\n").slice(-15).join("\n  ");
    super(
      `${name} did not start (${how}).${end === "" ? "" : ` The end of its log:\n  ${end}`}`,
      `Fix what the log names and start again; or use a ${name} of your own by ` +
        `${name === "Redis" ? "REDIS_URL=redis://…" : "DATABASE_URL=postgres://…"}`,
    );
    this.log = log;
  }
}

async function portFor(kind: ServerKind): Promise<number> {
  const lastUsed = readRecord(kind.dir)?.port;
  return lastUsed !== undefined && (await isPortFree(lastUsed)) ? lastUsed : freePort();
}

function recordPath(dir: string): string {
  return join(dir, "server.json");
}

function readRecord(dir: string): ServerRecord | undefined {
  try {
    const record: Partial<ServerRecord> = JSON.parse(readFileSync(recordPath(dir), "utf8"));
    const { pid, began, port } = record;
    if (pid === undefined || began === undefined || port === undefined || record.dir !== dir) return undefined;
    return { pid, began, port, dir };
  } catch {
    return undefined;
  }
}

function writeRecord(dir: string, pid: number, port: number): ServerRecord | undefined {
  const process = recordProcess(pid);
  // It has ended already; the end is reported by its exit.
  if (!process) return undefined;
  const record = { ...process, port, dir };
  writeFileSync(recordPath(dir), JSON.stringify(record));
  return record;
}

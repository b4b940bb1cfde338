import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * Identifies one process. A pid alone does not: after the process has ended, the system gives its pid to another one,
 * and in a container soon. So the record also holds when the process began.
 */
export interface ProcessRecord {
  pid: number;
  began: string;
}

const isLinux = process.platform === "linux";

/** The record of a running process; undefined if no process with this pid runs. */
export function recordProcess(pid: number): ProcessRecord | undefined {
  const began = describeProcess(pid)?.began;
  return began === undefined ? undefined : { pid, began };
}

export function isRunning(record: ProcessRecord): boolean {
  return recordProcess(record.pid)?.began === record.began;
}

/** The command line of a running process; empty if it can't be read. */
export function commandLine(pid: number): string {
  return describeProcess(pid)?.command ?? "";
}

/** Writes the record of a process to a file, with more about it. Does nothing if the process has ended already. */
export function saveRecord(file: string, pid: number, more: object = {}): ProcessRecord | undefined {
  const record = recordProcess(pid);
  if (record) writeFileSync(file, JSON.stringify({ ...more, ...record, file }));
  return record;
}

/** A copy of the file counts as no record: it names the process of the original's owner. */
export function readRecord<More extends object>(file: string): (ProcessRecord & Partial<More>) | undefined {
  try {
    const record = JSON.parse(readFileSync(file, "utf8"));
    return record.file === file && record.began !== undefined ? record : undefined;
  } catch {
    return undefined;
  }
}

/** Asks the process to end, waits until it has, and kills it when the time is up. Does nothing if it is gone. */
export async function stopProcess(
  record: ProcessRecord | undefined,
  { signal, timeoutMs }: { signal: NodeJS.Signals; timeoutMs: number },
): Promise<void> {
  if (!record || !isRunning(record)) return;
  const deadline = Date.now() + timeoutMs;
  send(record.pid, signal);
  // A frozen process acts on nothing until it is continued.
  signalFamily(record, "SIGCONT");
  while (isRunning(record)) {
    if (Date.now() > deadline) signalFamily(record, "SIGKILL");
    await sleep(20);
  }
}

/** Sends a signal to the process and its own children. PostgreSQL's backends are such children. */
export function signalFamily(record: ProcessRecord, signal: NodeJS.Signals): void {
  if (!isRunning(record)) return;
  for (const pid of [record.pid, ...childrenOf(record.pid)]) send(pid, signal);
}

function describeProcess(pid: number): { began: string; command: string } | undefined {
  try {
    return isLinux ? describeByProc(pid) : describeByPs(pid);
  } catch {
    return undefined; // There is no such process.
  }
}

/** Slim Linux images have no `ps`. */
function describeByProc(pid: number): { began: string; command: string } | undefined {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The fields after the program's name, which is in parentheses and may itself contain spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", startTicks = ""] = [fields[0], fields[19]];
  if (hasEnded(state)) return undefined;
  return { began: startTicks, command: readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ") };
}

function describeByPs(pid: number): { began: string; command: string } | undefined {
  const text = execFileSync("ps", ["-ww", "-o", "state=,lstart=,command=", "-p", String(pid)], {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [state = "", ...fields] = text.trim().split(/\s+/);
  if (hasEnded(state)) return undefined;
  const dateFields = 5;
  return { began: fields.slice(0, dateFields).join(" "), command: fields.slice(dateFields).join(" ") };
}

/** A zombie has ended: only its parent has not noticed yet. */
const hasEnded = (state: string) => /^[ZX]/.test(state);

export function childrenOf(pid: number): number[] {
  try {
    const text = isLinux
      ? readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      : execFileSync("pgrep", ["-P", String(pid)], { encoding: "utf8" });
    return text.split(/\s+/).filter(Boolean).map(Number);
  } catch {
    return []; // It has ended; or pgrep found none.
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It has ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

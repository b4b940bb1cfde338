import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * One process, for good. A pid alone is not: after its process ended it is given to another, and in a container soon.
 * So the time at which the process began belongs to it.
 */
export interface ProcessRecord {
  pid: number;
  began: string;
}

/** The record of a process that runs now; undefined when there is none with this pid. */
export function recordProcess(pid: number): ProcessRecord | undefined {
  const began = process.platform === "linux" ? beganOnLinux(pid) : beganByPs(pid);
  return began === undefined ? undefined : { pid, began };
}

export function isRunning(record: ProcessRecord): boolean {
  return recordProcess(record.pid)?.began === record.began;
}

/** Asks the process to end, waits until it has, and kills it when the time is up. Does nothing if it is gone. */
export async function stopProcess(
  record: ProcessRecord,
  { signal, timeoutMs }: { signal: NodeJS.Signals; timeoutMs: number },
): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  let killed = false;
  if (isRunning(record)) {
    send(record.pid, signal);
    // A frozen process acts on nothing until it is continued.
    signalFamily(record, "SIGCONT");
  }
  while (isRunning(record)) {
    if (!killed && Date.now() > deadline) {
      signalFamily(record, "SIGKILL");
      killed = true;
    }
    await sleep(20);
  }
}

/** Sends a signal to the process and its own children, as PostgreSQL's backends are. */
export function signalFamily(record: ProcessRecord, signal: NodeJS.Signals): void {
  if (!isRunning(record)) return;
  for (const pid of processFamily(record.pid)) send(pid, signal);
}

/** The command line of a process that runs now; empty when it can't be read. */
export function commandLine(pid: number): string {
  try {
    return process.platform === "linux"
      ? readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ")
      : ps("command", pid);
  } catch {
    return "";
  }
}

/** From /proc, since slim images have no `ps`. A zombie has ended; it only waits for its parent to notice. */
function beganOnLinux(pid: number): string | undefined {
  try {
    const { state, startTicks } = procStat(pid);
    return state === "Z" || state === "X" ? undefined : `${bootId()} ${startTicks}`;
  } catch {
    return undefined;
  }
}

function beganByPs(pid: number): string | undefined {
  try {
    const [state, ...began] = ps("state,lstart", pid).split(/\s+/);
    return state === undefined || state.startsWith("Z") ? undefined : began.join(" ");
  } catch {
    return undefined;
  }
}

function processFamily(pid: number): number[] {
  if (process.platform !== "linux") {
    try {
      return [
        pid,
        ...execFileSync("pgrep", ["-P", String(pid)], { encoding: "utf8" })
          .trim()
          .split("\n")
          .map(Number),
      ];
    } catch {
      return [pid];
    }
  }
  const children = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((candidate) => {
      try {
        return procStat(candidate).parent === pid;
      } catch {
        return false;
      }
    });
  return [pid, ...children];
}

/** The fields after the program's name, which stands in parentheses and may itself hold spaces and parentheses. */
function procStat(pid: number): { state: string; parent: number; startTicks: string } {
  const text = readFileSync(`/proc/${pid}/stat`, "utf8");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { state: fields[0] ?? "", parent: Number(fields[1]), startTicks: fields[19] ?? "" };
}

function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

function ps(fields: string, pid: number): string {
  const output = execFileSync("ps", ["-ww", "-o", `${fields.replaceAll(",", "=,")}=`, "-p", String(pid)], {
    encoding: "utf8",
    env: { ...process.env, LC_ALL: "C" },
    stdio: ["ignore", "pipe", "ignore"],
  });
  return output.trim();
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // It ended in the meantime.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

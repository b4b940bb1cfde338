import { readdirSync, readFileSync } from "node:fs";

/** Linux counts CPU time for programs in hundredths of a second (USER_HZ) on every architecture that Node runs on. */
const microsecondsPerTick = 10_000;

/**
 * The CPU time in µs that a process has used so far, with all its threads and child processes. undefined: this
 * operating system has no /proc.
 */
export function cpuTimeUs(pid: number): number | undefined {
  const processes = readProcesses();
  const own = processes.get(pid);
  if (own === undefined) return undefined;
  const family = [own];
  // Grows while it is walked through: the children of children, too.
  for (const { pid: parent } of family) {
    family.push(...[...processes.values()].filter((candidate) => candidate.parent === parent));
  }
  return family.reduce((sum, { ticks }) => sum + ticks, 0) * microsecondsPerTick;
}

interface ProcessTime {
  pid: number;
  parent: number;
  /** Its own, and that of children that have ended. */
  ticks: number;
}

function readProcesses(): Map<number, ProcessTime> {
  return new Map(
    processIds()
      .flatMap((pid) => readProcess(pid) ?? [])
      .map((process) => [process.pid, process]),
  );
}

function processIds(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

function readProcess(pid: number): ProcessTime | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // See proc_pid_stat(5). The program's name, in parentheses, may hold anything.
    const fields = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .map(Number);
    const [, parent = 0] = fields;
    const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15);
    return { pid, parent, ticks: user + system + childrenUser + childrenSystem };
  } catch {
    // It has ended since the list was read.
    return undefined;
  }
}

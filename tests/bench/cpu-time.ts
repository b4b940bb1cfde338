import { readFileSync } from "node:fs";
import { childrenOf } from "@booking-events/scripts/process-record";

/** Linux counts CPU time for programs in hundredths of a second (USER_HZ) on every architecture that Node runs on. */
const microsecondsPerTick = 10_000;

/**
 * @returns the CPU time in µs that a process has used so far, with all its threads and child processes; undefined if
 *   the process has ended, or this operating system has no /proc
 */
export function cpuTimeUs(pid: number): number | undefined {
  try {
    // See proc_pid_stat(5). The program's name, in parentheses, may contain anything.
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // User and system time of the process itself, then of its children that have ended.
    const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
    return childrenOf(pid).reduce((sum, child) => sum + (cpuTimeUs(child) ?? 0), ticks * microsecondsPerTick);
  } catch {
    return undefined;
  }
}

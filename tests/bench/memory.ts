import { readFileSync } from "node:fs";

/** @returns the resident memory of a process; NaN if it has ended, or this operating system has no /proc */
export function residentMiB(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
  } catch {
    return Number.NaN;
  }
}

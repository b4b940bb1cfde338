import { readFileSync } from "node:fs";
import { repeat } from "@booking-events/runtime";
import { childrenOf } from "@booking-events/scripts/process-record";

/** The most memory that a process has taken, in MiB. */
export interface PeakMemory {
  name: string;
  /** Resident, with the memory that it shares with others. */
  residentMebibytes: number;
  /** Resident and its own. Read once a second, so a shorter peak may be missed; the other is exact. */
  ownMebibytes: number;
}

const lookIntervalMs = 1_000;
const kibibytesPerMebibyte = 1_024;

/**
 * @param listProcesses names and pids, asked each time, since processes come and go
 * @returns returns the peaks so far, by name. Empty where there is no /proc
 */
export function watchMemory(
  listProcesses: () => [name: string, pid: number][],
  signal: AbortSignal,
): () => PeakMemory[] {
  const peaks = new Map<string, PeakMemory>();
  void repeat(look, lookIntervalMs, signal);
  return () => {
    look();
    return [...peaks.values()];
  };

  function look(): void {
    for (const [name, pid] of listProcesses()) {
      const status = readProc(pid, "status");
      const { residentMebibytes = 0, ownMebibytes = 0 } = peaks.get(name) ?? {};
      const peak = {
        name,
        residentMebibytes: Math.max(residentMebibytes, readMebibytes(status, "VmHWM")),
        ownMebibytes: Math.max(ownMebibytes, readMebibytes(status, "RssAnon")),
      };
      if (peak.residentMebibytes > 0) peaks.set(name, peak);
    }
  }
}

/** PostgreSQL's own helpers are its children as well. Only a process that serves a client shows an address. */
export function listBackends(postgresPid: number): number[] {
  return childrenOf(postgresPid).filter((pid) => /^postgres: .* 127\.0\.0\.1\(/.test(readProc(pid, "cmdline")));
}

function readMebibytes(status: string, field: string): number {
  const [, kibibytes = "0"] = new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status) ?? [];
  return Math.round(Number(kibibytes) / kibibytesPerMebibyte);
}

/** Empty when the process has ended. */
function readProc(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return "";
  }
}

import { readFileSync } from "node:fs";

/** The most memory that a process has taken, in MiB. */
export interface PeakMemory {
  name: string;
  /** Resident, with the memory that it shares with others. */
  residentMebibytes: number;
  /** Resident and its own. Looked up once a second, so that a shorter peak may be missed; the other is exact. */
  ownMebibytes: number;
}

export interface MemoryWatch {
  /** Of each process that was ever named; those with one name count as one. Empty where there is no /proc. */
  stop(): PeakMemory[];
}

const lookIntervalMs = 1_000;
const kibibytesPerMebibyte = 1_024;

/** @param listProcesses asked anew each time, since processes come and go */
export function watchMemory(listProcesses: () => { name: string; pid: number }[]): MemoryWatch {
  const peaks = new Map<string, PeakMemory>();
  const timer = setInterval(look, lookIntervalMs);
  look();

  function look(): void {
    for (const { name, pid } of listProcesses()) {
      const status = readProc(pid, "status");
      const peak = peaks.get(name) ?? { name, residentMebibytes: 0, ownMebibytes: 0 };
      peak.residentMebibytes = Math.max(peak.residentMebibytes, readMebibytes(status, "VmHWM"));
      peak.ownMebibytes = Math.max(peak.ownMebibytes, readMebibytes(status, "RssAnon"));
      if (peak.residentMebibytes > 0) peaks.set(name, peak);
    }
  }

  return {
    stop() {
      clearInterval(timer);
      look();
      return [...peaks.values()];
    },
  };
}

/** PostgreSQL's own processes are its children as well: those that serve a client name its address. */
export function listBackends(postgresPid: number): number[] {
  return readProc(postgresPid, `task/${postgresPid}/children`)
    .split(" ")
    .map(Number)
    .filter((pid) => pid > 0 && /^postgres: .* 127\.0\.0\.1\(/.test(readProc(pid, "cmdline")));
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

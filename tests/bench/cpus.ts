import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Which CPUs may be used by whom; undefined: the operating system decides. */
export interface CpuPlan {
  underTest: string | undefined;
  others: string | undefined;
}

/**
 * The process under test has one CPU of its own; Redis, PostgreSQL and the load generator share the others. So what it
 * does in a second depends on its own work, and not on how the others were scheduled.
 *
 * @param isShared all have all CPUs, as they would on one machine
 */
export function planCpus(isShared = false): CpuPlan {
  const [first, ...others] = cpusAtStart;
  if (first === undefined || others.length === 0 || !hasTaskset()) return { underTest: undefined, others: undefined };
  const all = cpusAtStart.join(",");
  return isShared ? { underTest: all, others: all } : { underTest: String(first), others: others.join(",") };
}

/** This process, and with it all that it will start. */
export function pinThisProcess(cpus: string | undefined): void {
  if (cpus !== undefined) execFileSync("taskset", ["-a", "-c", "-p", cpus, String(process.pid)], { stdio: "ignore" });
}

/** The command that runs the one which follows it on these CPUs. That keeps its process id. */
export function onCpus(cpus: string | undefined): string[] {
  return cpus === undefined ? [] : ["taskset", "-c", cpus];
}

/** Such as "0-3,8". Other systems than Linux have no such list, and no taskset. */
function allowedCpus(): number[] {
  try {
    const status = readFileSync("/proc/self/status", "utf8");
    const ranges = /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1]?.split(",") ?? [];
    return ranges.flatMap((range) => {
      const [first = 0, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
  } catch {
    return [];
  }
}

/** Before this process was given fewer. */
const cpusAtStart = allowedCpus();

function hasTaskset(): boolean {
  try {
    execFileSync("taskset", ["--version"], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}

import { execFileSync } from "node:child_process";

/** CPUs as taskset takes them, such as "0,1"; undefined: the operating system decides. */
export interface CpuPlan {
  underTest: string | undefined;
  others: string | undefined;
}

/**
 * The process under test has one CPU of its own; Redis, PostgreSQL and the load generator share the others. Otherwise
 * its speed would depend on how the operating system schedules the others.
 *
 * @param isShared all processes share all CPUs, as they would on one machine
 */
export function planCpus(isShared = false): CpuPlan {
  const [first, ...others] = cpusAtStart;
  if (first === undefined || others.length === 0) return { underTest: undefined, others: undefined };
  const all = cpusAtStart.join();
  return isShared ? { underTest: all, others: all } : { underTest: String(first), others: others.join() };
}

/** Applies to all processes that this one starts later, too. */
export function pinThisProcess(cpus: string | undefined): void {
  if (cpus !== undefined) execFileSync("taskset", ["-a", "-c", "-p", cpus, String(process.pid)], { stdio: "ignore" });
}

/** The start of a command that runs the rest of it on these CPUs, with the same process id. */
export function onCpus(cpus: string | undefined): string[] {
  return cpus === undefined ? [] : ["taskset", "-c", cpus];
}

/** Read before this process is pinned. Empty without taskset, which only Linux has. */
const cpusAtStart = allowedCpus();

function allowedCpus(): number[] {
  try {
    // Its output ends with a list such as "0-3,8".
    const output = execFileSync("taskset", ["-c", "-p", String(process.pid)], { encoding: "utf8", stdio: "pipe" });
    const ranges = output.slice(output.lastIndexOf(":") + 1).split(",");
    return ranges.flatMap((range) => {
      const [first = 0, last = first] = range.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, index) => first + index);
    });
  } catch {
    return [];
  }
}

import { availableParallelism, cpus } from "node:os";
import { cpuTimeUs } from "@booking-events/bench/cpu-time";

/** How many cores each took on average. */
export type Cores = Record<string, number>;

/** Its threads, too, and so what it sends. */
const thisCommand = "this command";

/**
 * Starts to measure how much of the machine each process takes, with its child processes. What is neither named nor idle
 * is "elsewhere": other programs on this machine, for which the service has to wait.
 *
 * @returns ends the measurement. Empty where there is no /proc
 */
export function measureCores(pids: Readonly<Record<string, number>>): () => Cores {
  const before = readTimes();
  return () => {
    const after = readTimes();
    const elapsedMs = after.atMs - before.atMs;
    const cores: Cores = {};
    for (const name of [thisCommand, ...Object.keys(pids)]) {
      const [from, to] = [before.usedMs[name], after.usedMs[name]];
      if (from !== undefined && to !== undefined) cores[name] = (to - from) / elapsedMs;
    }
    if (Object.keys(cores).length === 1) return {};
    const named = Object.values(cores).reduce((sum, share) => sum + share, 0);
    const idle = (after.idleMs - before.idleMs) / elapsedMs;
    const rounded = Object.entries({ ...cores, elsewhere: availableParallelism() - idle - named, idle });
    return Object.fromEntries(rounded.map(([name, share]) => [name, Math.max(0, Math.round(share * 100) / 100)]));
  };

  function readTimes() {
    const { user, system } = process.cpuUsage();
    const usedMs: Record<string, number> = { [thisCommand]: (user + system) / 1_000 };
    for (const [name, pid] of Object.entries(pids)) {
      const usedUs = cpuTimeUs(pid);
      if (usedUs !== undefined) usedMs[name] = usedUs / 1_000;
    }
    const idleMs = cpus().reduce((sum, { times }) => sum + times.idle, 0);
    return { atMs: performance.now(), usedMs, idleMs };
  }
}

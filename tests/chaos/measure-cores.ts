import { availableParallelism, cpus } from "node:os";
import { cpuTimeUs } from "@booking-events/bench/cpu-time";

/**
 * Starts to measure how many cores each process uses on average, with its child processes. "This command" is the one
 * that posts. "Elsewhere" is what other programs of this machine use, which slow the service down.
 *
 * @returns ends the measurement. Empty where there is no /proc
 */
export function measureCores(pids: Readonly<Record<string, number>>): () => Record<string, number> {
  const before = readTimes();
  return () => {
    const after = readTimes();
    const elapsedMs = after.atMs - before.atMs;
    const cores = Object.fromEntries(
      Object.entries(after.usedMs).map(([name, usedMs]) => [name, (usedMs - (before.usedMs[name] ?? 0)) / elapsedMs]),
    );
    if (Object.keys(cores).length === 1) return {};
    const named = Object.values(cores).reduce((sum, share) => sum + share, 0);
    const idle = (after.idleMs - before.idleMs) / elapsedMs;
    const all = Object.entries({ ...cores, elsewhere: availableParallelism() - idle - named, idle });
    return Object.fromEntries(all.map(([name, share]) => [name, Math.max(0, Math.round(share * 100) / 100)]));
  };

  function readTimes() {
    const { user, system } = process.cpuUsage();
    const usedMs: Record<string, number> = { "this command": (user + system) / 1_000 };
    for (const [name, pid] of Object.entries(pids)) {
      const usedUs = cpuTimeUs(pid);
      if (usedUs !== undefined) usedMs[name] = usedUs / 1_000;
    }
    const idleMs = cpus().reduce((sum, { times }) => sum + times.idle, 0);
    return { atMs: performance.now(), usedMs, idleMs };
  }
}

import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Duplex, Readable } from "node:stream";
import { childrenOf } from "@booking-events/scripts/process-record";

/** Of its own files, `perf stat` is told to use these for commands and for its answers. */
const [commands, answers] = [3, 4];

/**
 * Begins to count the instructions that processes execute, with all their threads and child processes. Unlike CPU time,
 * it hardly depends on what else the machine is doing. It needs `perf` (Debian's linux-perf) and the right to use it.
 *
 * @returns what ends the count, and returns it for each group of processes; NaN without `perf`
 */
export async function countInstructions(groups: readonly (readonly number[])[]): Promise<() => Promise<number[]>> {
  const counts = await Promise.all(groups.map(startCount));
  return () => Promise.all(counts.map((count) => count()));
}

async function startCount(pids: readonly number[], tries = 3): Promise<() => Promise<number>> {
  const all = pids.flatMap((pid) => [pid, ...childrenOf(pid)]);
  const control = ["--delay", "-1", "--control", `fd:${commands},${answers}`];
  const perf = spawn("perf", ["stat", "-x,", "-e", "instructions", ...control, "-p", all.join()], {
    stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
  });
  let output = "";
  perf.stderr?.on("data", (data) => {
    output += data;
  });
  const ended = new Promise<"ended">((resolve) => {
    perf.once("error", () => resolve("ended")).once("close", () => resolve("ended"));
  });
  (perf.stdio[commands] as Duplex).on("error", () => {}).write("enable\n");
  const begun = once(perf.stdio[answers] as Readable, "data");
  // One of PostgreSQL's processes may have ended meanwhile.
  if ((await Promise.race([begun, ended])) === "ended" && tries > 1) return startCount(pids, tries - 1);
  return async () => {
    perf.kill("SIGINT");
    await ended;
    return Number(/^(\d+),/m.exec(output)?.[1] ?? Number.NaN);
  };
}

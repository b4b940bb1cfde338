import { readFileSync } from "node:fs";
import { platform } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import type { EventEnvelope } from "@booking-events/schema";
import { childrenOf } from "../cpu-time.ts";
import { createEnvelope, fillQueue } from "../fill-queue.ts";
import { countLeft } from "../measure-apply.ts";
import { newQueuePrefix, startWorker } from "../process-under-test.ts";
import { runRounds } from "../rounds.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario } from "../scenario.ts";

const eventsWaiting = 4_000;
const eventsInSmoke = 100;
const heapMiB = 512;
const pollMs = 50;

/** The largest payloads that ingest accepts: in JSON values, and in text of each width in UTF-8. */
const payloads: Record<string, EventEnvelope["payload"]> = {
  "1,990 empty objects": { list: Array(1_990).fill({}) },
  "one text of 21,000 characters of 3 bytes": { text: "€".repeat(21_000) },
  "one text of 32,000 characters of 2 bytes": { text: "é".repeat(32_000) },
  "1,900 fields with long names": Object.fromEntries(
    Array.from({ length: 1_900 }, (_, index) => [`a-field-with-a-long-name-${index}`, index]),
  ),
  "1,900 texts of 30 characters": { list: Array(1_900).fill("x".repeat(30)) },
};

export const memory: Scenario = {
  name: "memory",
  about: "what a worker and its PostgreSQL backends take at most for the largest events (on Linux)",
  async run(bench) {
    if (platform() !== "linux") return [];
    const count = bench.isSmoke ? eventsInSmoke : eventsWaiting;
    const title = `memory, ${count} of the largest events waiting, --max-old-space-size=${heapMiB}`;
    const variants = Object.entries(payloads).map(([name, payload]) => [name, () => measure(bench, payload, count)]);
    return [{ title, measurements: await runRounds(bench, title, Object.fromEntries(variants)), comparisons: [] }];
  },
};

async function measure(bench: Bench, payload: EventEnvelope["payload"], count: number): Promise<Measurement> {
  const { services, signal } = bench;
  const queuePrefix = newQueuePrefix();
  const events = Array.from({ length: count }, (_, index) =>
    createEnvelope(index, { kind: "create", reference: `TRIP-${index}`, payload }),
  );
  await fillQueue(services.redisUrl, queuePrefix, events);
  return services.withDatabase(async ({ url, query }) => {
    const program = [`--max-old-space-size=${heapMiB}`, ...builtApps.worker];
    const worker = await startWorker(bench, program, { queuePrefix, databaseUrl: url });
    try {
      let backendMiB = 0;
      while ((await countLeft(bench, queuePrefix)) > 0) {
        signal.throwIfAborted();
        const { exitCode, signalCode } = worker.child;
        if (exitCode !== null || signalCode !== null) throw new Error(worker.output().slice(-2_000));
        // PostgreSQL's own processes are among its children, but smaller than any backend.
        const childMiB = childrenOf(services.postgresPid).map((pid) => readMiB(pid, "RssAnon"));
        backendMiB = Math.max(backendMiB, ...childMiB);
        await sleep(pollMs);
      }
      const workerMiB = readMiB(worker.child.pid ?? -1, "VmHWM");
      const [found] = await query<{ count: number }>("select count(*)::int as count from booking_events");
      if (found?.count !== count) throw new IntegrityError(`PostgreSQL has ${found?.count} of ${count} events.`);
      return { workerMiB, backendMiB };
    } finally {
      await worker.stop();
      await services.emptyRedis();
    }
  });
}

/** @param field of proc_pid_status(5): VmHWM is the peak of resident memory, RssAnon is without shared buffers */
function readMiB(pid: number, field: "VmHWM" | "RssAnon"): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return Number(new RegExp(`^${field}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1_024;
  } catch {
    // It has ended.
    return 0;
  }
}

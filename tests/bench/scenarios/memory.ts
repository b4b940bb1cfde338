import { readFileSync } from "node:fs";
import { platform } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import { applyLoad } from "../load.ts";
import { ourConcurrency } from "../measure-apply.ts";
import { startPipeline } from "../pipeline.ts";
import { newBookings } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario } from "../scenario.ts";
import { spreadOf } from "../statistics.ts";

const minutes = 10;
/** Low enough that every machine keeps up with it, which is what makes a growing memory a leak. */
const rate = 1_000;
const sampleIntervalMs = 1_000;
/** Of the samples at the beginning and at the end that are compared. */
const compared = 1 / 5;

export const memory: Scenario = {
  name: "memory",
  about: `what ingest and worker hold in memory over ${minutes} minutes of load (on Linux)`,
  isOnWholeMachine: true,
  async run(bench) {
    if (platform() !== "linux") return [];
    const title = `memory over ${minutes} minutes at ${rate} events/s, all processes on all CPUs`;
    const { ingest, worker } = await measure(bench);
    return [
      {
        title,
        measurements: {
          "ingest, at the beginning": [ingest.first],
          "ingest, at the end": [ingest.last],
          "worker, at the beginning": [worker.first],
          "worker, at the end": [worker.last],
        },
        comparisons: (["ingest", "worker"] as const).map((name) => ({
          ...{ figure: "memoryMiB" as const, of: `${name}, at the end`, to: `${name}, at the beginning`, atLeast: 0.9 },
        })),
      },
    ];
  },
};

interface Course {
  first: Measurement;
  last: Measurement;
}

async function measure(bench: Bench): Promise<Record<"ingest" | "worker", Course>> {
  const pipeline = await startPipeline(bench, {
    ...{ ingest: builtApps.ingest, worker: builtApps.worker, concurrency: ourConcurrency },
  });
  const load = (durationMs: number) =>
    applyLoad({ url: pipeline.url, ...newBookings, connections: 16, rate, durationMs, isAside: true });
  try {
    // Until both have compiled what they need, and their heaps have grown to what they use.
    await load(bench.isSmoke ? 1_000 : 60_000);
    const samples = { ingest: [] as number[], worker: [] as number[] };
    let isOver = false;
    const sampling = (async () => {
      while (!isOver) {
        for (const name of ["ingest", "worker"] as const) samples[name].push(residentMiB(pipeline[name].pid));
        await sleep(bench.isSmoke ? 50 : sampleIntervalMs);
      }
    })();
    await load(bench.isSmoke ? bench.measureMs : minutes * 60_000).finally(() => {
      isOver = true;
    });
    await sampling;
    if ((await pipeline.countBacklog()) > rate) throw new IntegrityError("The worker does not keep up.");
    return { ingest: toCourse(samples.ingest), worker: toCourse(samples.worker) };
  } finally {
    await pipeline.stop();
  }
}

/** As Linux sees it. */
function residentMiB(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
}

function toCourse(samples: number[]): Course {
  const part = Math.ceil(samples.length * compared);
  const median = (values: number[]) => ({ memoryMiB: spreadOf(values).median });
  return { first: median(samples.slice(0, part)), last: median(samples.slice(-part)) };
}

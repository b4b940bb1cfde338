import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { builtApps } from "@booking-events/harness/app-process";
import { noLimit, writeNewPartners } from "@booking-events/harness/partners-file";
import { cpuTimeUs } from "../cpu-time.ts";
import { applyLoad } from "../load.ts";
import { countLeft } from "../measure-apply.ts";
import { residentMiB } from "../memory.ts";
import { newQueuePrefix, startUnderTest } from "../process-under-test.ts";
import { newBookings } from "../sample-events.ts";
import { type Bench, IntegrityError, type Measurement, type Scenario } from "../scenario.ts";

// The worker comes first: it creates the tables.
const apps = ["worker", "ingest", "lookup", "webhooks", "console"] as const;
const eventsPerSecond = 500;

export const resources: Scenario = {
  name: "resources",
  about: `CPU time and memory of each process, idle and at ${eventsPerSecond} events/s`,
  isOnWholeMachine: true,
  run: (bench) =>
    withAllProcesses(bench, async ({ pids, load }) => {
      await load(bench.warmUpMs);
      await sleep(bench.warmUpMs, undefined, { signal: bench.signal });
      const idle = await watch(bench, "idle", pids, () => sleep(bench.measureMs, undefined, { signal: bench.signal }));
      const title = `${eventsPerSecond} events/s`;
      const loaded = await watch(bench, title, pids, () => load(bench.measureMs));
      return [
        { title: "idle", measurements: idle, comparisons: [] },
        { title, measurements: loaded, comparisons: [] },
      ];
    }),
};

interface Running {
  /** By the name of the process. */
  pids: Record<string, number>;
  load(durationMs: number): Promise<void>;
}

async function withAllProcesses<Result>(bench: Bench, work: (running: Running) => Promise<Result>): Promise<Result> {
  const { services, dir } = bench;
  const partnersFile = join(dir, "partners.json");
  const { acme } = writeNewPartners(partnersFile, { acme: noLimit });
  return services.withDatabase(async (database) => {
    const queuePrefix = newQueuePrefix();
    const environment = {
      REDIS_URL: services.redisUrl,
      DATABASE_URL: database.url,
      QUEUE_PREFIX: queuePrefix,
      PARTNERS_FILE: partnersFile,
      CONSOLE_PASSWORD: "a password of the benchmark",
    };
    const pids: Record<string, number> = { Redis: services.redisPid, PostgreSQL: services.postgresPid };
    const stops: (() => Promise<unknown>)[] = [];
    let url = "";
    try {
      for (const name of apps) {
        const app = await startUnderTest(bench, builtApps[name], environment);
        stops.push(() => app.stop());
        pids[name] = app.pid;
        if (name === "ingest") url = `${app.url}/booking-event/create/${acme}`;
      }
      return await work({
        pids,
        async load(durationMs) {
          await applyLoad({ url, ...newBookings, connections: 16, durationMs, rate: eventsPerSecond, isAside: true });
          const left = await countLeft(bench, queuePrefix);
          if (left > eventsPerSecond)
            throw new IntegrityError(`${left} events wait: the machine does not bear the load.`);
        },
      });
    } finally {
      await Promise.all(stops.map((stop) => stop()));
      await services.emptyRedis();
    }
  });
}

/** Watches all processes at the same time, in each round. */
async function watch(
  { rounds, say }: Bench,
  title: string,
  pids: Record<string, number>,
  wait: () => Promise<void>,
): Promise<Record<string, Measurement[]>> {
  const measurements: Record<string, Measurement[]> = {};
  const note = (name: string, measurement: Measurement) => {
    measurements[name] = [...(measurements[name] ?? []), measurement];
  };
  for (let round = 1; round <= rounds; round += 1) {
    const startedAtMs = performance.now();
    const before = new Map(Object.entries(pids).map(([name, pid]) => [name, cpuTimeUs(pid) ?? Number.NaN]));
    await wait();
    const elapsedS = (performance.now() - startedAtMs) / 1_000;
    let sum = 0;
    for (const [name, pid] of Object.entries(pids)) {
      const cpuMsPerSecond = ((cpuTimeUs(pid) ?? Number.NaN) - (before.get(name) ?? 0)) / 1_000 / elapsedS;
      sum += cpuMsPerSecond;
      // The memory of PostgreSQL's processes is mostly the same.
      const memory = name === "PostgreSQL" ? {} : { memoryMiB: residentMiB(pid) };
      note(name, { cpuMsPerSecond, ...memory });
    }
    note("all", { cpuMsPerSecond: sum });
    say(`${title}, round ${round} of ${rounds}: ${sum.toPrecision(4)} ms of CPU a second`);
  }
  return measurements;
}

import type { ViolationKind } from "./check.ts";
import { type Fault, scenarioMs, scenarios } from "./fault-plan.ts";

/** The processes under test: what Node is given to run each app, and Redis' settings. */
export interface Build {
  name: string;
  ingest: readonly string[];
  worker: readonly string[];
  redisSettings: Readonly<Record<string, string>>;
}

export const realBuild: Build = {
  name: "real",
  ingest: ["apps/ingest/dist/main.js"],
  worker: ["apps/worker/dist/main.js"],
  redisSettings: {},
};

/** A build with one mistake, the faults that bring it to light, and the violation that must be found. */
export interface BrokenBuild extends Build {
  faults: readonly Fault[];
  postMs: number;
  mustFind: ViolationKind;
}

const broken = { ...realBuild, postMs: scenarioMs };

export const brokenBuilds: readonly BrokenBuild[] = [
  {
    ...broken,
    name: "acknowledge-before-enqueue",
    ingest: fromSource("acknowledge-before-enqueue"),
    faults: scenarios["redis frozen, then killed with both ingests"],
    mustFind: "lost",
  },
  {
    ...broken,
    name: "redis-without-append-only-file",
    ingest: fromSource("ignore-redis-settings"),
    redisSettings: { appendonly: "no" },
    faults: scenarios["postgres frozen, redis and all workers killed"],
    mustFind: "lost",
  },
  {
    ...broken,
    name: "order-by-arrival",
    worker: fromSource("order-by-arrival"),
    faults: scenarios["postgres frozen, a worker killed"],
    mustFind: "out of order",
  },
  {
    ...broken,
    name: "commit-after-finishing",
    worker: fromSource("commit-after-finishing"),
    faults: scenarios["postgres frozen, all workers killed"],
    mustFind: "lost",
  },
  {
    ...broken,
    name: "accept-what-waited",
    ingest: fromSource("accept-what-waited"),
    faults: scenarios["an ingest frozen for longer than senders wait"],
    mustFind: "overtaken",
  },
];

/** Its mistake shows in `bad-neighbour.ts`, where nothing is killed. */
export const waitForLocks: Build = { ...realBuild, name: "wait-for-locks", worker: fromSource("wait-for-locks") };

function fromSource(entry: string): string[] {
  return [
    // Node 24.0 to 24.2 still call type stripping experimental.
    "--disable-warning=ExperimentalWarning",
    "--conditions=@booking-events/source",
    `tests/chaos/broken/${entry}.ts`,
  ];
}

import { builtApps, fromSource } from "@booking-events/harness/app-process";
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
  ...builtApps,
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
    ingest: fromSource("tests/chaos/broken/acknowledge-before-enqueue.ts"),
    faults: scenarios["redis frozen, then killed with both ingests"],
    mustFind: "lost",
  },
  {
    ...broken,
    name: "redis-without-append-only-file",
    ingest: fromSource("tests/chaos/broken/ignore-redis-settings.ts"),
    redisSettings: { appendonly: "no" },
    faults: scenarios["postgres frozen, redis and all workers killed"],
    mustFind: "lost",
  },
  {
    ...broken,
    name: "order-by-arrival",
    worker: fromSource("tests/chaos/broken/order-by-arrival.ts"),
    faults: scenarios["postgres frozen, a worker killed"],
    mustFind: "out of order",
  },
  {
    ...broken,
    name: "commit-after-finishing",
    worker: fromSource("tests/chaos/broken/commit-after-finishing.ts"),
    faults: scenarios["postgres frozen, all workers killed"],
    mustFind: "lost",
  },
  {
    ...broken,
    name: "accept-what-waited",
    ingest: fromSource("tests/chaos/broken/accept-what-waited.ts"),
    faults: scenarios["an ingest frozen for longer than senders wait"],
    mustFind: "overtaken",
  },
];

/** Its mistake shows in `bad-neighbour.ts`, where nothing is killed. */
export const waitForLocks: Build = {
  ...realBuild,
  name: "wait-for-locks",
  worker: fromSource("tests/chaos/broken/wait-for-locks.ts"),
};

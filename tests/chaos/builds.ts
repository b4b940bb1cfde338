import { builtApps, fromSource } from "@booking-events/harness/app-process";
import type { ViolationKind } from "./check.ts";
import { type Fault, scenarioMs, scenarios } from "./fault-plan.ts";

/** The processes under test: what Node is given to run each app. */
export interface Build {
  name: string;
  ingest: readonly string[];
  worker: readonly string[];
  lookup: readonly string[];
  webhooks: readonly string[];
  ops: readonly string[];
  /** A program that follows the feed: see `keep-copy.ts`. */
  reader: readonly string[];
}

export const realBuild: Build = { name: "real", ...builtApps, reader: fromSource("tests/chaos/run-reader.ts") };

/** A build with one mistake, the faults that bring it to light, and the violation that must be found. */
export interface BrokenBuild extends Build {
  faults: readonly Fault[];
  postMs: number;
  mustFind: ViolationKind;
}

export const brokenBuilds: readonly BrokenBuild[] = [
  breakBuild("acknowledge-before-enqueue", "lost", "redis frozen, then killed with both ingests", {
    ingest: fromSource("tests/chaos/broken/acknowledge-before-enqueue.ts"),
  }),
  breakBuild("redis-without-append-only-file", "lost", "postgres frozen, redis and all workers killed", {
    ingest: fromSource("tests/chaos/broken/ignore-redis-settings.ts"),
  }),
  breakBuild("order-by-arrival", "out of order", "postgres frozen, a worker killed", {
    worker: fromSource("tests/chaos/broken/order-by-arrival.ts"),
  }),
  breakBuild("commit-after-finishing", "lost", "postgres frozen, all workers killed", {
    worker: fromSource("tests/chaos/broken/commit-after-finishing.ts"),
  }),
  breakBuild("feed-any-database", "stranger", "postgres frozen, a worker killed", {
    worker: fromSource("tests/chaos/broken/feed-any-database.ts"),
  }),
  breakBuild("copy-by-reference", "guest stays", "postgres frozen, a worker killed", {
    reader: fromSource("tests/chaos/broken/copy-by-reference.ts"),
  }),
  breakBuild("start-over-without-deleting", "guest stays", "postgres frozen, a worker killed", {
    reader: fromSource("tests/chaos/broken/start-over-without-deleting.ts"),
  }),
  breakBuild("restore-earlier", "wrong restore", "postgres frozen, a worker killed", {
    ops: fromSource("tests/chaos/broken/restore-earlier.ts"),
  }),
  {
    ...breakBuild("accept-what-waited", "overtaken", "an ingest frozen for longer than senders wait", {
      ingest: fromSource("tests/chaos/broken/accept-what-waited.ts"),
    }),
    // Newer events of the same bookings must come before it goes on.
    postMs: 10_000,
  },
  breakBuild(
    "trust-one-clock",
    "lost",
    "postgres 440 days ahead while a worker starts, an ingest and a worker three days ahead, redis two hours behind",
    { worker: fromSource("tests/chaos/broken/trust-one-clock.ts") },
  ),
  breakBuild(
    "move-place-early",
    "wrong delivery",
    "a webhooks told to stop, the other frozen for longer than its lease, then the first killed",
    {
      webhooks: fromSource("tests/chaos/broken/move-place-early.ts"),
    },
  ),
  breakBuild("ignore-leases", "wrong delivery", "postgres frozen, a worker killed", {
    webhooks: fromSource("tests/chaos/broken/ignore-leases.ts"),
  }),
  breakBuild("read-content-early", "guest stays", "postgres frozen, a worker killed", {
    webhooks: fromSource("tests/chaos/broken/read-content-early.ts"),
  }),
];

/** Its mistake shows in `bad-neighbour.ts`, where nothing is killed. */
export const waitForLocks: Build = {
  ...realBuild,
  name: "wait-for-locks",
  worker: fromSource("tests/chaos/broken/wait-for-locks.ts"),
};

function breakBuild(
  name: string,
  mustFind: ViolationKind,
  scenario: keyof typeof scenarios,
  mistake: Partial<Build>,
): BrokenBuild {
  return { ...realBuild, name, mustFind, faults: scenarios[scenario], postMs: scenarioMs, ...mistake };
}

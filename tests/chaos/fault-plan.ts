import type { Random } from "./random.ts";

export const appNames = [
  "ingest-1",
  "ingest-2",
  "worker-1",
  "worker-2",
  "worker-3",
  "webhooks-1",
  "webhooks-2",
] as const;
/** A lookup runs only beside bad neighbours, where nothing is hit. */
export type AppName = (typeof appNames)[number] | "lookup-1";
/** The strangers are of another database, and are never hit. */
export type ProcessName = AppName | "stranger-worker" | "stranger-lookup";
/** What can be hit, by its name in the log and the report. */
export type TargetName = AppName | "redis" | "postgres";

/** `atMs` counts from the first post. */
export type Fault = { atMs: number; target: TargetName } & (
  | {
      /** Ends the process, and starts it again after `downMs`. */
      action: "end";
      signal: "SIGKILL" | "SIGTERM" | "SIGQUIT";
      downMs: number;
    }
  /** SIGSTOP, and SIGCONT after `forMs`: others can connect to it, and get no answer. */
  | { action: "freeze"; forMs: number }
  /** From then on, Redis' clock is this far ahead of the machine's; if negative, behind it. */
  | { action: "set clock"; aheadMs: number }
  /** For `forMs`, the target's clock is so far from the machine's that others refuse to work with it. */
  | { action: "wrong clock"; aheadMs: number; forMs: number }
  /** PostgreSQL presents an expired certificate for `forMs`, and ends all connections over TLS. */
  | { action: "expire certificate"; forMs: number }
);

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/**
 * Faults that are known to reveal a certain mistake. The service must survive all of them. `builds.ts` has a broken
 * build for most of them, in which they must reveal it.
 */
export const scenarios = {
  /**
   * Each event has a deadline by Redis' clock. The clock is set back while some events wait in the sockets of Redis,
   * and others in the memory of a frozen ingest. It goes back much further than they have waited, so ingest notices.
   */
  "redis frozen and its clock set back meanwhile, an ingest frozen for longer; an expired certificate": [
    { atMs: 100, target: "redis", action: "set clock", aheadMs: 45_000 },
    freeze("redis", 600, 3_000),
    freeze("ingest-1", 900, 6_000),
    { atMs: 2_000, target: "redis", action: "set clock", aheadMs: -45_000 },
    { atMs: 3_000, target: "postgres", action: "expire certificate", forMs: 3_000 },
  ],
  /** An ingest that does not wait for Redis acknowledges events while Redis is frozen. When both die, they are lost. */
  "redis frozen, then killed with both ingests": [
    freeze("redis", 2_000, 2_500),
    kill("redis", 3_000, 2_000),
    kill("ingest-1", 3_200),
    kill("ingest-2", 3_200),
  ],
  /** What was acknowledged during the freeze is only on Redis' disk and in the memory of the workers. */
  "postgres frozen, redis and all workers killed": [
    freeze("postgres", 1_000, 4_000),
    kill("redis", 4_000, 500),
    kill("worker-1", 4_100),
    kill("worker-2", 4_100),
    kill("worker-3", 4_100),
  ],
  /** What the killed worker held comes back many seconds later, after events that were received later. */
  "postgres frozen, a worker killed": [freeze("postgres", 1_000, 3_000), kill("worker-1", 3_000)],
  /** A worker that finishes a delivery before it commits does so now, and dies before the commit. */
  "postgres frozen, all workers killed": [
    freeze("postgres", 1_000, 3_500),
    kill("worker-1", 3_500),
    kill("worker-2", 3_500),
    kill("worker-3", 3_500),
  ],
  /**
   * A worker maintains the database when it starts, which takes up to 20 s on a busy machine, and removes what is older
   * than 400 days. An ingest that is days ahead gives events ids of other months, and a worker retries events at once. By
   * a Redis that is behind, events lose to those before them.
   */
  "postgres 440 days ahead while a worker starts, an ingest and a worker three days ahead, redis two hours behind": [
    wrongClock("postgres", 100, 440 * dayMs, 30_000),
    wrongClock("ingest-1", 200, 3 * dayMs, 3_000),
    wrongClock("worker-2", 300, 3 * dayMs, 3_000),
    kill("worker-1", 1_500),
    wrongClock("redis", 3_500, -2 * hourMs, 1_000),
  ],
  /**
   * The first is told to stop, so the other one takes over at once; then it freezes, and loses its leases; then the first
   * one is killed, and holds leases that nobody has given back.
   */
  "a webhooks told to stop, the other frozen for longer than its lease, then the first killed": [
    { atMs: 1_000, target: "webhooks-1", action: "end", signal: "SIGTERM", downMs: 0 },
    freeze("webhooks-2", 3_000, 12_500),
    kill("webhooks-1", 15_800),
  ],
  /** Its senders give up, go to the other one, and send newer events there. Then it reads what they had sent to it. */
  "an ingest frozen for longer than senders wait": [freeze("ingest-1", 300, 9_500)],
} satisfies Record<string, readonly Fault[]>;

/** Enough for the faults of most scenarios, and some time without any. Of others, the last faults come later. */
export const scenarioMs = 7_000;

const gapMs = { least: 1_000, most: 4_500 };
const downMs = { least: 0, most: 3_000 };
/** The longest outlasts the lock of a delivery and the idle time-out of a transaction: a worker loses both. */
const freezeMs = { least: 500, most: 12_000 };
const expiryMs = { least: 1_500, most: 6_000 };
const wrongClockMs = { least: 1_000, most: 6_000 };
/** From just beyond the limit to more than what the log keeps. */
const wrongBy = [6 * 60_000, 2 * hourMs, 3 * dayMs, 440 * dayMs];
/** A step is up to twice as long. Ingest refuses events whose sequence is five minutes ahead of its clock. */
export const maxClockErrorMs = 60_000;
/** What a restart may take on a busy machine, before the same target is hit again. */
const recoveryMs = 2_000;

/** Redis and PostgreSQL are hit less often than the workers together: without them, nothing gets through. */
const targets: readonly TargetName[] = [...appNames, "redis", "redis", "postgres", "postgres"];

/** SIGTERM asks the apps to stop in good order; SIGQUIT makes PostgreSQL end at once and recover at its start. */
const endings = {
  app: ["SIGKILL", "SIGKILL", "SIGTERM"],
  redis: ["SIGKILL"],
  postgres: ["SIGKILL", "SIGQUIT"],
} as const;

/**
 * The known scenarios one after the other, then random faults at random times, all of them begun before `durationMs`.
 * The same random numbers give the same plan.
 */
export function planFaults(random: Random, durationMs: number): Fault[] {
  const known = planScenarios(Object.values(scenarios));
  const knownEndMs = Object.keys(scenarios).length * scenarioMs;
  const faults = [...known, ...planRandomFaults(random, known, { fromMs: knownEndMs, toMs: durationMs })];
  return inOrder(faults.filter(({ atMs }) => atMs < durationMs));
}

/** One scenario after the other. */
export function planScenarios(some: readonly (readonly Fault[])[]): Fault[] {
  return inOrder(
    some.flatMap((faults, index) => faults.map((fault) => ({ ...fault, atMs: fault.atMs + index * scenarioMs }))),
  );
}

function inOrder(faults: readonly Fault[]): Fault[] {
  return faults.toSorted((one, other) => one.atMs - other.atMs);
}

/** @param known some of them may come later than `fromMs` */
function planRandomFaults(
  random: Random,
  known: readonly Fault[],
  { fromMs, toMs }: { fromMs: number; toMs: number },
): Fault[] {
  const faults: Fault[] = [];
  const busyUntilMs = new Map(known.map((fault) => [fault.target, fault.atMs + lengthMs(fault) + recoveryMs]));
  for (let atMs = fromMs; atMs < toMs; atMs += random.between(gapMs.least, gapMs.most)) {
    const fault = planRandomFault(random, Math.round(atMs));
    if (atMs < (busyUntilMs.get(fault.target) ?? 0)) continue;
    faults.push(fault);
    busyUntilMs.set(fault.target, atMs + lengthMs(fault) + recoveryMs);
  }
  return faults;
}

function planRandomFault(random: Random, atMs: number): Fault {
  const within = ({ least, most }: typeof gapMs) => Math.round(random.between(least, most));
  const target = random.pick(targets);
  if (target === "redis" && random.chance(0.4)) {
    const aheadMs = within({ least: -maxClockErrorMs, most: maxClockErrorMs });
    return { atMs, target, action: "set clock", aheadMs };
  }
  if (target === "postgres" && random.chance(0.3))
    return { atMs, target, action: "expire certificate", forMs: within(expiryMs) };
  // By the clock of webhooks it is judged when an attempt began.
  if (!target.startsWith("webhooks") && random.chance(0.15)) {
    const aheadMs = random.pick(wrongBy) * random.pick([1, -1]);
    return wrongClock(target, atMs, aheadMs, within(wrongClockMs));
  }
  if (random.chance(0.5)) return freeze(target, atMs, within(freezeMs));
  const signal = random.pick(endings[target === "redis" || target === "postgres" ? target : "app"]);
  return { atMs, target, action: "end", signal, downMs: within(downMs) };
}

function freeze(target: TargetName, atMs: number, forMs: number): Fault {
  return { atMs, target, action: "freeze", forMs };
}

function kill(target: TargetName, atMs: number, downMs = 0): Fault {
  return { atMs, target, action: "end", signal: "SIGKILL", downMs };
}

function wrongClock(target: TargetName, atMs: number, aheadMs: number, forMs: number): Fault {
  return { atMs, target, action: "wrong clock", aheadMs, forMs };
}

export function lengthMs(fault: Fault): number {
  if (fault.action === "set clock") return 0;
  return fault.action === "end" ? fault.downMs : fault.forMs;
}

import type { Random } from "./random.ts";

/** Names of what can be hit, as in the log and the report. */
const ingestNames = ["ingest-1", "ingest-2"] as const;
const workerNames = ["worker-1", "worker-2", "worker-3"] as const;
export const appNames = [...ingestNames, ...workerNames] as const;
export type AppName = (typeof ingestNames)[number] | (typeof workerNames)[number];
export type TargetName = AppName | "redis" | "postgres";

/** `atMs` counts from the first post. */
export type Fault = { atMs: number } & (
  | {
      target: TargetName;
      /** Ends the process, and starts it again after `downMs`. */
      action: "end";
      signal: "SIGKILL" | "SIGTERM" | "SIGQUIT";
      downMs: number;
    }
  | {
      target: TargetName;
      /** SIGSTOP, and SIGCONT after `forMs`: to the others it is there and does not answer. */
      action: "freeze";
      forMs: number;
    }
  | {
      target: "redis";
      /** From then on, its clock is as far ahead of the machine's, or behind it. */
      action: "set clock";
      aheadMs: number;
    }
  | {
      target: "postgres";
      /** It presents an expired certificate for `forMs`, and ends all connections over TLS. */
      action: "expire certificate";
      forMs: number;
    }
);

/**
 * Faults that are known to bring a certain mistake to light: `builds.ts` has a build for each, in which they must. The
 * service must come through all of them.
 */
export const scenarios = {
  /**
   * Each event has a deadline by Redis' clock, which is set back while some wait in the sockets of Redis, and others in
   * the memory of a frozen ingest. By then it has gone back much further than they have waited, which can be told.
   */
  "redis frozen and its clock set back meanwhile, an ingest frozen for longer; an expired certificate": [
    { atMs: 100, target: "redis", action: "set clock", aheadMs: 45_000 },
    { atMs: 600, target: "redis", action: "freeze", forMs: 3_000 },
    { atMs: 900, target: "ingest-1", action: "freeze", forMs: 4_900 },
    { atMs: 2_000, target: "redis", action: "set clock", aheadMs: -45_000 },
    { atMs: 3_000, target: "postgres", action: "expire certificate", forMs: 3_000 },
  ],
  /** Whoever acknowledges before Redis has confirmed goes on to do so while it is frozen. Then nobody has the events. */
  "redis frozen, then killed with both ingests": [
    { atMs: 2_000, target: "redis", action: "freeze", forMs: 2_500 },
    { atMs: 3_000, target: "redis", action: "end", signal: "SIGKILL", downMs: 2_000 },
    ...ingestNames.map((target): Fault => ({ atMs: 3_200, target, action: "end", signal: "SIGKILL", downMs: 0 })),
  ],
  /** What was acknowledged meanwhile is nowhere but on Redis' disk: the workers took all of it into their memory. */
  "postgres frozen, redis and all workers killed": [
    { atMs: 1_000, target: "postgres", action: "freeze", forMs: 4_000 },
    { atMs: 4_000, target: "redis", action: "end", signal: "SIGKILL", downMs: 500 },
    ...workerNames.map((target): Fault => ({ atMs: 4_100, target, action: "end", signal: "SIGKILL", downMs: 0 })),
  ],
  /** What the killed worker held comes back many seconds later, after events that were received later. */
  "postgres frozen, a worker killed": [
    { atMs: 1_000, target: "postgres", action: "freeze", forMs: 3_000 },
    { atMs: 3_000, target: "worker-1", action: "end", signal: "SIGKILL", downMs: 0 },
  ],
  /** Whoever calls a delivery done before its event is committed does so now, and dies before the commit. */
  "postgres frozen, all workers killed": [
    { atMs: 1_000, target: "postgres", action: "freeze", forMs: 3_500 },
    ...workerNames.map((target): Fault => ({ atMs: 3_500, target, action: "end", signal: "SIGKILL", downMs: 0 })),
  ],
  /** Its senders give up, go to the other one, and send newer events there. Then it reads what they had sent to it. */
  "an ingest frozen for longer than senders wait": [{ atMs: 300, target: "ingest-1", action: "freeze", forMs: 6_500 }],
} satisfies Record<string, readonly Fault[]>;

/** A scenario's faults, and some time without any. */
export const scenarioMs = 7_000;

const longestGapMs = 4_500;
const shortestGapMs = 1_000;
const longestDownMs = 3_000;
const shortestFreezeMs = 500;
/** Longer than a delivery's lock and than PostgreSQL lets a transaction idle: a worker may wake up as a zombie. */
const longestFreezeMs = 12_000;
/** Steps of the clock are up to twice that. Ingest refuses events whose sequence is five minutes ahead of its clock. */
export const maxClockErrorMs = 60_000;
const shortestExpiryMs = 1_500;
const longestExpiryMs = 6_000;
/** What a restart may take on a busy machine, before the same target is hit again. */
const recoveryMs = 2_000;

const targets: readonly TargetName[] = [
  ...ingestNames,
  ...workerNames,
  // As often as all workers together is too much: nothing gets through without them.
  ...(["redis", "redis", "postgres", "postgres"] as const),
];

/** SIGTERM asks the apps to stop in good order; SIGQUIT makes PostgreSQL end at once and recover at its start. */
const endings = {
  app: ["SIGKILL", "SIGKILL", "SIGTERM"],
  redis: ["SIGKILL"],
  postgres: ["SIGKILL", "SIGQUIT"],
} as const;

/**
 * The known scenarios one after the other, then random faults at random times, all of them begun before `durationMs`.
 * The same random gives the same plan.
 */
export function planFaults(random: Random, durationMs: number): Fault[] {
  const known = Object.values(scenarios).flatMap((faults, index) =>
    faults.map((fault) => ({ ...fault, atMs: fault.atMs + index * scenarioMs })),
  );
  const knownEndMs = Object.keys(scenarios).length * scenarioMs;
  return [...known, ...planRandomFaults(random, knownEndMs, durationMs)].filter(({ atMs }) => atMs < durationMs);
}

function planRandomFaults(random: Random, fromMs: number, toMs: number): Fault[] {
  const faults: Fault[] = [];
  const busyUntilMs = new Map<TargetName, number>();
  for (let atMs = fromMs; atMs < toMs; atMs += random.between(shortestGapMs, longestGapMs)) {
    const fault = planRandomFault(random, Math.round(atMs));
    if (atMs < (busyUntilMs.get(fault.target) ?? 0)) continue;
    faults.push(fault);
    busyUntilMs.set(fault.target, atMs + lengthMs(fault) + recoveryMs);
  }
  return faults;
}

function planRandomFault(random: Random, atMs: number): Fault {
  const target = random.pick(targets);
  if (target === "redis" && random.chance(0.4)) {
    return {
      atMs,
      target,
      action: "set clock",
      aheadMs: Math.round(random.between(-maxClockErrorMs, maxClockErrorMs)),
    };
  }
  if (target === "postgres" && random.chance(0.3)) {
    const forMs = Math.round(random.between(shortestExpiryMs, longestExpiryMs));
    return { atMs, target, action: "expire certificate", forMs };
  }
  if (random.chance(0.5)) {
    const forMs = Math.round(random.between(shortestFreezeMs, longestFreezeMs));
    return { atMs, target, action: "freeze", forMs };
  }
  const signal = random.pick(endings[target === "redis" || target === "postgres" ? target : "app"]);
  return { atMs, target, action: "end", signal, downMs: Math.round(random.between(0, longestDownMs)) };
}

export function lengthMs(fault: Fault): number {
  if (fault.action === "set clock") return 0;
  return fault.action === "end" ? fault.downMs : fault.forMs;
}

export function describeFault(fault: Fault): string {
  const seconds = (lengthMs(fault) / 1_000).toFixed(1);
  switch (fault.action) {
    case "end":
      return `${fault.target} ended by ${fault.signal}, down for ${seconds} s`;
    case "freeze":
      return `${fault.target} frozen for ${seconds} s`;
    case "set clock":
      return `clock of ${fault.target} set to ${(fault.aheadMs / 1_000).toFixed(1)} s ahead`;
    case "expire certificate":
      return `certificate of ${fault.target} expired for ${seconds} s`;
  }
}

import type { CpuPlan } from "./cpus.ts";
import type { DataServices } from "./data-services.ts";

/** One question to the service, answered by measurements beside baselines. It stands in a file of scenarios/. */
export interface Scenario {
  name: string;
  /** One line for the help. */
  about: string;
  /** True: all processes share all CPUs. Else the process under test has one of its own. */
  isOnWholeMachine?: boolean;
  /** @throws IntegrityError when what was measured did not do its work */
  run(bench: Bench): Promise<Section[]>;
}

/** What a scenario has at hand. It starts and stops the processes that it measures; the data services are there. */
export interface Bench {
  /** How often each contestant is measured, in turn with the others. */
  rounds: number;
  /** How long one measurement lasts, more or less. */
  measureMs: number;
  /** How long a process works before it is measured, so that its code is compiled. */
  warmUpMs: number;
  /** Only asks whether the scenario runs and its integrity holds: as little of everything as that needs. */
  isSmoke: boolean;
  services: DataServices;
  cpus: CpuPlan;
  /** For files of the run. It is deleted at the end. */
  dir: string;
  /** Where each process under test leaves a CPU profile; undefined: none does. */
  profileDir: string | undefined;
  say: (line: string) => void;
  /** Aborts when the run is to stop. */
  signal: AbortSignal;
}

/** Some contestants under the same conditions. */
export interface Section {
  title: string;
  /** By contestant, one for each round. */
  measurements: Record<string, Measurement[]>;
  comparisons: Comparison[];
}

/**
 * What is measured. The unit is part of the name. `isCost`: less is better.
 *
 * CPU time is the operating system's account of a process with all its threads. It tells two contestants apart even
 * where the load generator or Redis is the bottleneck for both.
 */
export const figures = {
  eventsPerSecond: { title: "events/s", digits: 0, isCost: false },
  p50Ms: { title: "p50 ms", digits: 2, isCost: true },
  p99Ms: { title: "p99 ms", digits: 2, isCost: true },
  p50Us: { title: "p50 µs", digits: 1, isCost: true },
  p90Us: { title: "p90 µs", digits: 1, isCost: true },
  cpuUs: { title: "CPU µs/event", digits: 1, isCost: true },
  redisCpuUs: { title: "Redis", digits: 1, isCost: true },
  postgresCpuUs: { title: "PostgreSQL", digits: 1, isCost: true },
  loadCpuUs: { title: "load generator", digits: 1, isCost: true },
  redisBytes: { title: "Redis bytes/event", digits: 0, isCost: true },
  postgresBytes: { title: "PostgreSQL bytes/event", digits: 0, isCost: true },
  bookingBytes: { title: "bytes/booking", digits: 0, isCost: true },
  timesPayload: { title: "times the payload", digits: 2, isCost: true },
  memoryMiB: { title: "memory MiB", digits: 1, isCost: true },
  loopDelayP99Ms: { title: "p99 ms of the event loop", digits: 1, isCost: true },
  attacksPerSecond: { title: "attacking connections/s", digits: 0, isCost: false },
  refusedShare: { title: "refused share of the other", digits: 3, isCost: false },
} as const satisfies Record<string, { title: string; digits: number; isCost: boolean }>;

export type FigureName = keyof typeof figures;
/** A figure is undefined where the operating system does not tell it. */
export type Measurement = Partial<Record<FigureName, number | undefined>>;

/**
 * How many times as good one contestant is as another, by one figure: their ratio, so turned that more is better.
 * Without a limit it is only shown.
 */
export interface Comparison {
  figure: FigureName;
  of: string;
  to: string;
  atLeast?: number;
  atMost?: number;
}

/** A measurement that counts for nothing: a request failed, or what was acknowledged is not where it must be. */
export class IntegrityError extends Error {
  override name = "IntegrityError";
}

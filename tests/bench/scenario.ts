import type { CpuPlan } from "./cpus.ts";
import type { DataServices } from "./data-services.ts";

/** One question about the performance of the service, answered by measurements. */
export interface Scenario {
  name: string;
  /** One line for the help. */
  about: string;
  /** All processes share all CPUs. Otherwise the process under test has a CPU of its own. */
  isOnWholeMachine?: boolean;
  /** Settings of PostgreSQL that differ from its defaults. */
  postgresSettings?: Readonly<Record<string, string>>;
  /** @throws IntegrityError when what was measured did not do its work */
  run(bench: Bench): Promise<Section[]>;
}

/** What a scenario gets. The data services are running; it starts and stops the processes that it measures. */
export interface Bench {
  /** How often each variant is measured, in turn with the others. */
  rounds: number;
  /** How long one measurement lasts, approximately. */
  measureMs: number;
  /** How long a process works before it is measured, to give V8 time to compile its code. */
  warmUpMs: number;
  /** Only checks that the scenario runs and keeps its integrity, with as few events as that needs. */
  isSmoke: boolean;
  services: DataServices;
  cpus: CpuPlan;
  /** For files of the run. It is deleted at the end. */
  dir: string;
  /** Where each process under test writes a CPU profile; undefined: it writes none. */
  profileDir: string | undefined;
  /** The root of another clone of the repository, whose built apps are measured beside ours. */
  otherClone: string | undefined;
  say: (line: string) => void;
  /** Aborts when the run must stop. */
  signal: AbortSignal;
}

/** Variants measured under the same conditions. */
export interface Section {
  title: string;
  /** By variant, one for each round. */
  measurements: Record<string, Measurement[]>;
  comparisons: Comparison[];
}

/**
 * Of everything but events per second, less is better. CPU time is what the operating system counts for a process and
 * all its threads, per event. It tells two variants apart even where the load generator or Redis limits both. So do
 * instructions, and other programs on the machine change them less.
 */
export type Figure =
  | "eventsPerSecond"
  | "p50Ms"
  | "p95Ms"
  | "p99Ms"
  | "cpuUs"
  | "redisCpuUs"
  | "postgresCpuUs"
  /** Of the load generator. */
  | "loadCpuUs"
  /** CPU time of a process in a second, and its resident memory. */
  | "cpuMsPerSecond"
  | "memoryMiB"
  /** Thousands of instructions: of the process under test, of Redis and of PostgreSQL. */
  | "kInstructions"
  | "redisKInstructions"
  | "postgresKInstructions"
  /** Of an event in the log, a booking and a change. */
  | "logBytes"
  | "logIndexBytes"
  | "bookingBytes"
  | "bookingIndexBytes"
  | "changeBytes";

/** A figure is NaN where the operating system does not provide it. */
export type Measurement = Partial<Record<Figure, number>>;

/** How many times better one variant is than another in one figure. */
export interface Comparison {
  figure: Figure;
  of: string;
  to: string;
}

/** The measurement is void: a request failed, or an acknowledged event is not where it must be. */
export class IntegrityError extends Error {
  override name = "IntegrityError";
}

import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { type Tally, type Violation, type ViolationKind, violationKinds } from "./check.ts";
import type { Fault } from "./fault-plan.ts";
import type { MachineFaultReport } from "./measure-strikes.ts";
import type { RedisEngineName } from "./redis-engines.ts";

/** The outcome of a run, as it is written to the JSON report. */
export interface Report {
  passed: boolean;
  /** The build under test: "real", or the name of a broken one. */
  build: string;
  startedAt: string;
  tookMs: number;
  tally: Tally;
  violationCounts: Record<ViolationKind, number>;
  /** The first of each kind. */
  violations: Violation[];
}

export interface ChaosReport extends Report {
  seed: number;
  ratePerSecond: number;
  postedForMs: number;
  /** All of them were seen from outside, or there would be no report. */
  faults: Fault[];
  redis: "one" | RedisEngineName;
  postgres: "one" | "standby";
  /** Of Redis' replicas, how many must have had an event before it was accepted. */
  replicasToConfirm: number;
  /** False: the machine has no libfaketime, or Redis has replicas, and the faults are without clock steps. */
  clockIsSet: boolean;
  /** Of workers to PostgreSQL. There were no others, unless PostgreSQL had a standby. */
  tlsConnections: number;
  /** How often somebody else held a booking's row for a while. */
  rowLocks: number;
  /** Of a test partner, acknowledged. */
  testEvents: number;
  /** Guests that were erased, and how many of the commands were killed. */
  erasures: { guests: number; kills: number };
  /** What an operator put back, and how many of the commands were killed. */
  restores: { commands: number; kills: number };
  /** How often programs that keep a copy of the bookings were stopped, and started over. */
  readers: { stops: number; resets: number };
  /** Requests to subscribers, and how often the lease of a subscription changed hands. */
  deliveries: { requests: number; accepted: number; forgotten: number; erased: number; takeovers: number };
  /** Of servers with replicas. */
  machineFaults: MachineFaultReport[];
}

export const noClockSteps = "No clock is set: this machine has no libfaketime, or servers have replicas.";
const maxViolationsOfAKind = 20;
const maxExamplesShown = 3;
const maxExampleLength = 250;

const kinds = Object.keys(violationKinds) as ViolationKind[];

export function makeReport({
  violations,
  ...run
}: Pick<Report, "build" | "tally" | "violations"> & { startedAt: Date }): Report {
  const ofKind = (kind: ViolationKind) => violations.filter((violation) => violation.kind === kind);
  return {
    ...run,
    passed: violations.length === 0,
    startedAt: run.startedAt.toISOString(),
    tookMs: Date.now() - run.startedAt.getTime(),
    // Each kind is a key of the result, since `kinds` has them all.
    violationCounts: Object.fromEntries(kinds.map((kind) => [kind, ofKind(kind).length])) as Report["violationCounts"],
    violations: kinds.flatMap((kind) => ofKind(kind).slice(0, maxViolationsOfAKind)),
  };
}

export async function writeReport(report: Report, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(report, null, 2)}\n`);
}

export function formatChaosReport(report: ChaosReport): string {
  const { tally, faults } = report;
  const countOf = (action: Fault["action"]) => faults.filter((fault) => fault.action === action).length;
  return [
    "",
    formatCount("attempted", tally.attempted, `events, in ${format(tally.requests)} requests`),
    formatCount("acknowledged", tally.acknowledged, `${format(tally.givenUp)} given up after the last retry`),
    formatCount("applied", tally.applied, `events in the log, ${format(tally.unacknowledged)} never acknowledged`),
    formatCount("duplicated", tally.duplicated, "of these, recorded as repetitions"),
    formatCount("superseded", tally.superseded, "of these, applied after a later event"),
    formatCount("bookings", tally.bookings, `changed ${format(tally.changes)} times`),
    formatCount("faults", faults.length, "in all"),
    formatCount("  ended", countOf("end"), "processes, and started again"),
    formatCount("  frozen", countOf("freeze"), "processes, for a while"),
    ...(report.redis === "one"
      ? [
          formatCount(
            "  clock set",
            countOf("set clock"),
            report.clockIsSet ? "of Redis, forward or back" : noClockSteps,
          ),
          formatCount(
            "  clock wrong",
            countOf("wrong clock"),
            "of a server or process, by minutes to days, for a while",
          ),
        ]
      : [formatCount("confirmed by", report.replicasToConfirm, "replicas of Redis, before an event was accepted")]),
    ...(report.postgres === "one"
      ? [
          formatCount("  expired", countOf("expire certificate"), "certificates of PostgreSQL"),
          formatCount("connections", report.tlsConnections, "of workers to PostgreSQL, all over TLS"),
        ]
      : []),
    formatCount("row locks", report.rowLocks, "held from outside for up to 6 s"),
    formatCount("test events", report.testEvents, "of a test partner, acknowledged"),
    formatCount("erased", report.erasures.guests, `guests, and ${report.erasures.kills} of the commands killed`),
    formatCount("restored", report.restores.commands, `times, and ${report.restores.kills} of the commands killed`),
    formatCount("readers", report.readers.stops, `times stopped, and ${report.readers.resets} times started over`),
    formatCount(
      "deliveries",
      report.deliveries.requests,
      `requests, ${format(report.deliveries.accepted)} accepted, ${report.deliveries.forgotten} of them then lost`,
    ),
    formatCount("takeovers", report.deliveries.takeovers, "of subscriptions by another process"),
    ...formatMachineFaults(report.machineFaults),
    ...formatVerdict(report, `Seed ${report.seed}, build ${report.build}`),
  ].join("\n");
}

function formatMachineFaults(faults: readonly MachineFaultReport[]): string[] {
  if (faults.length === 0) return [];
  const seconds = (ms: number) => (ms / 1_000).toFixed(1).padStart(6);
  return [
    "",
    "  times  refused  applied nothing   longest time in s, for each fault of a server with replicas",
    ...faults.map(
      ({ name, count, longestRefusalMs, longestPauseMs }) =>
        `${String(count).padStart(7)}  ${seconds(longestRefusalMs)}   ${seconds(longestPauseMs)}            ${name}`,
    ),
  ];
}

/** How many violations of each kind there are, the first of them, and whether the run has passed. */
export function formatVerdict({ violationCounts, violations, passed, tookMs }: Report, run: string): string[] {
  const counts = kinds.map((kind) => {
    const isViolated = violationCounts[kind] > 0;
    return `${formatCount(kind, violationCounts[kind], violationKinds[kind])}${isViolated ? "   VIOLATED" : ""}`;
  });
  const examples = kinds.flatMap((kind) =>
    violations
      .filter((violation) => violation.kind === kind)
      .slice(0, maxExamplesShown)
      .map(({ what }) => `  ${kind}: ${what.slice(0, maxExampleLength)}`),
  );
  const end = `${passed ? "Passed" : "FAILED"}. ${run}, ${Math.round(tookMs / 1_000)} s in all.`;
  return ["", "These must be 0:", ...counts, "", ...examples, end];
}

function formatCount(name: string, count: number, meaning: string): string {
  return `  ${name.padEnd(13)}${format(count).padStart(10)}   ${meaning}`;
}

export function format(count: number): string {
  return count.toLocaleString("en");
}

import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import type { Tally, Violation, ViolationKind } from "./check.ts";
import { violationKinds } from "./check.ts";
import type { Fault } from "./fault-plan.ts";

/** The outcome of one run, as it is written to the JSON report. */
export interface Report {
  passed: boolean;
  seed: number;
  /** The build under test: "real", or the name of a broken one. */
  build: string;
  ratePerSecond: number;
  postedForMs: number;
  startedAt: string;
  tookMs: number;
  tally: Tally;
  violationCounts: Record<ViolationKind, number>;
  /** The first of each kind. */
  violations: Violation[];
  /** All of them were seen from outside, or there would be no report. */
  faults: Fault[];
  /** False: there is no libfaketime on the machine, so the faults are without clock steps. */
  clockIsSet: boolean;
  /** Of workers to PostgreSQL. There were no others. */
  tlsConnections: number;
  /** How often somebody else held a booking's row for a while. */
  rowLocks: number;
}

export const noClockSteps = "There is no libfaketime on this machine, so Redis' clock is not set.";
const maxViolationsOfAKind = 20;
const maxExamplesShown = 3;
const maxExampleLength = 250;

export function makeReport(
  run: Pick<
    Report,
    | "seed"
    | "build"
    | "ratePerSecond"
    | "postedForMs"
    | "startedAt"
    | "tookMs"
    | "tally"
    | "faults"
    | "clockIsSet"
    | "tlsConnections"
    | "rowLocks"
  >,
  violations: Violation[],
): Report {
  return { passed: violations.length === 0, ...run, ...countViolations(violations) };
}

export function countViolations(violations: Violation[]): Pick<Report, "violationCounts" | "violations"> {
  const ofKind = (kind: ViolationKind) => violations.filter((violation) => violation.kind === kind);
  return {
    // Each kind is a key of the result, since `violationKinds` lists them all.
    violationCounts: Object.fromEntries(
      violationKinds.map((kind) => [kind, ofKind(kind).length]),
    ) as Report["violationCounts"],
    violations: violationKinds.flatMap((kind) => ofKind(kind).slice(0, maxViolationsOfAKind)),
  };
}

export async function writeReport(report: object, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${JSON.stringify(report, null, 2)}\n`);
}

const meanings: Record<ViolationKind, string> = {
  lost: "acknowledged, and not in the log",
  unexpected: "in the log or answered, and nobody can explain it",
  "out of order": "sent after another was acknowledged, logged before it",
  overtaken: "given up, and logged after newer ones were acknowledged",
  "wrong state": "bookings that are not the fold of their events",
  "wrong feed": "bookings that the feed of changes tells otherwise",
  dead: "dead letters",
  "attempt lost": "attempts that an outage has cost",
  crashed: "processes that ended by themselves or did not recover",
  stuck: "queues that did not become empty",
};

/** The final table, and the first violations. */
export function formatReport(report: Report): string {
  const { tally, faults, rowLocks, tlsConnections, passed, seed, tookMs } = report;
  const countOf = (action: Fault["action"]) => faults.filter((fault) => fault.action === action).length;
  const rows: [string, number, string][] = [
    ["attempted", tally.attempted, `events, in ${format(tally.requests)} requests`],
    ["acknowledged", tally.acknowledged, `${format(tally.givenUp)} given up by the partner after the last retry`],
    ["applied", tally.applied, `events in the log, ${format(tally.unacknowledged)} of them never acknowledged`],
    ["duplicated", tally.duplicated, "of these, recorded as repetitions"],
    ["superseded", tally.superseded, "of these, applied after a later event"],
    ["bookings", tally.bookings, `changed ${format(tally.changes)} times`],
    ["faults", faults.length, "in all"],
    ["  ended", countOf("end"), "processes, and started again"],
    ["  frozen", countOf("freeze"), "processes, for a while"],
    ["  clock set", countOf("set clock"), report.clockIsSet ? "of Redis, forward or back" : noClockSteps],
    ["  expired", countOf("expire certificate"), "certificates of PostgreSQL"],
    ["connections", tlsConnections, "of workers to PostgreSQL, all over TLS"],
    ["row locks", rowLocks, "held from outside for up to 6 s"],
  ];
  return [
    "",
    ...rows.map(formatRow),
    "",
    ...formatViolations(report),
    `${passed ? "Passed" : "FAILED"}. Seed ${seed}, build ${report.build}, ${Math.round(tookMs / 1_000)} s in all.`,
  ].join("\n");
}

/** How many of each kind there are, and the first of them. */
export function formatViolations({
  violationCounts,
  violations,
}: Pick<Report, "violationCounts" | "violations">): string[] {
  const checks = violationKinds.map((kind): [string, number, string] => [kind, violationCounts[kind], meanings[kind]]);
  return [
    "These must be 0:",
    ...checks.map(([name, count, meaning]) => `${formatRow([name, count, meaning])}${count > 0 ? "   VIOLATED" : ""}`),
    "",
    ...violationKinds.flatMap((kind) => examples(violations, kind)),
  ];
}

function examples(violations: Violation[], kind: ViolationKind): string[] {
  return violations
    .filter((violation) => violation.kind === kind)
    .slice(0, maxExamplesShown)
    .map(({ what }) => `  ${kind}: ${what.slice(0, maxExampleLength)}`);
}

function formatRow([name, count, meaning]: [string, number, string]): string {
  return `  ${name.padEnd(13)}${format(count).padStart(10)}   ${meaning}`;
}

function format(count: number): string {
  return count.toLocaleString("en");
}

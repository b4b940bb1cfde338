import type { Tally, Violation } from "./check.ts";
import type { Hold } from "./hold-booking.ts";
import type { Cores } from "./measure-cores.ts";
import type { Traffic } from "./neighbour-traffic.ts";
import { countViolations, formatViolations, type Report } from "./report.ts";
import type { PeakMemory } from "./watch-memory.ts";

/** The outcome of one run, as it is written to the JSON report. */
export interface NeighbourReport extends Pick<Report, "violationCounts" | "violations"> {
  passed: boolean;
  scenario: "bad-neighbour";
  build: string;
  startedAt: string;
  tookMs: number;
  quietMs: number;
  loudMs: number;
  /** From the last request until the queue was empty. */
  drainedInMs: number;
  /** How late this process's own timers were while it measured (p99): no time above can be trusted beyond it. */
  ownDelayMs: number;
  /** Of the well-behaved partners, from the sending of an event. */
  latencies: Record<"quiet" | "loud", { answerMs: Latency; applyMs: Latency }>;
  /** Of their events that were sent while the row was locked, how many were applied before it was free again. */
  holds: { sent: number; appliedMeanwhile: number }[];
  /** How often each status came; "none": no answer. */
  statuses: Record<string, Record<string, number>>;
  memory: PeakMemory[];
  /** In the loud time. */
  cores: Cores;
  promises: Promised[];
  tally: Tally;
}

interface Promised {
  name: string;
  isKept: boolean;
  /** Depends on the machine: a slow or busy one may break it. */
  isTimed: boolean;
  found: string;
}

interface Latency {
  p50: number;
  p99: number;
  max: number;
}

/** An event of a well-behaved partner. Times are `performance.now()`. */
export interface OrdinaryEvent {
  /** Null: not accepted. */
  eventId: string | null;
  sentAtMs: number;
  answeredAtMs: number;
  status: string;
}

const longestAnswerP99Ms = 250;
const longestApplyP99Ms = 5_000;
/**
 * What `docker-compose.yml` gives each process. A backend of PostgreSQL has taken 130 at the most, of which 51 were its
 * own and the rest shared buffers.
 */
const residentLimitsMebibytes = { ingest: 512, worker: 768, "postgres backend": 256 };
/** Before it, a batch that began without the lock may still be under way. */
const lockTakesHoldMs = 2_000;

export function makeNeighbourReport(run: {
  build: string;
  startedAt: Date;
  quietMs: number;
  loudMs: number;
  drainedInMs: number;
  ownDelayMs: number;
  cores: Cores;
  loudFromMs: number;
  wellBehaved: readonly string[];
  events: readonly OrdinaryEvent[];
  appliedAtMs: ReadonlyMap<string, number>;
  holds: readonly Hold[];
  traffics: readonly Traffic[];
  refused: ReadonlyMap<string, number>;
  peaks: PeakMemory[];
  tally: Tally;
  violations: Violation[];
}): NeighbourReport {
  const { events, appliedAtMs, loudFromMs, violations } = run;
  const applied = ({ eventId }: OrdinaryEvent) => appliedAtMs.get(eventId ?? "") ?? Number.POSITIVE_INFINITY;
  const measure = (some: OrdinaryEvent[]) => ({
    answerMs: toLatency(some.map(({ sentAtMs, answeredAtMs }) => answeredAtMs - sentAtMs)),
    // Infinite for one that was accepted and never applied.
    applyMs: toLatency(some.filter(({ eventId }) => eventId !== null).map((event) => applied(event) - event.sentAtMs)),
  });
  const latencies = {
    quiet: measure(events.filter(({ sentAtMs }) => sentAtMs < loudFromMs)),
    loud: measure(events.filter(({ sentAtMs }) => sentAtMs >= loudFromMs)),
  };
  const holds = run.holds.map(({ fromMs, toMs }) => {
    const sent = events.filter(({ sentAtMs }) => sentAtMs >= fromMs + lockTakesHoldMs && sentAtMs < toMs);
    return { sent: sent.length, appliedMeanwhile: sent.filter((event) => applied(event) < toMs).length };
  });
  const promises = [
    ...judgeAnswers(events),
    ...judgeHolds(holds),
    ...judgeLatencies(latencies.loud),
    ...run.peaks.flatMap(judgeMemory),
  ];
  return {
    passed: violations.length === 0 && promises.every(({ isKept }) => isKept),
    ...{ scenario: "bad-neighbour", build: run.build, startedAt: run.startedAt.toISOString() },
    ...{ tookMs: Date.now() - run.startedAt.getTime(), quietMs: run.quietMs, loudMs: run.loudMs },
    ...{ drainedInMs: Math.round(run.drainedInMs), ownDelayMs: Math.round(run.ownDelayMs) },
    ...{
      latencies,
      holds,
      statuses: countStatuses(run),
      memory: run.peaks,
      cores: run.cores,
      promises,
      tally: run.tally,
    },
    ...countViolations(violations),
  };
}

/** Timed, since ingest answers 503 when Redis has not got an event on disk in time, and the disk may be slow. */
function judgeAnswers(events: readonly OrdinaryEvent[]): Promised[] {
  const others = events.filter(({ status }) => status !== "200").length;
  const found = `${others} of ${events.length} otherwise`;
  return [{ name: "every well-behaved request is answered 200", isKept: others === 0, isTimed: true, found }];
}

/**
 * Says more than a time: a slow machine applies less of what is sent while the row is locked, but some of it. Unless it
 * is so overloaded that the queue is longer than the lock.
 */
function judgeHolds(holds: NeighbourReport["holds"]): Promised[] {
  const name = "a locked booking makes no other partner wait";
  const tellings = holds.filter(({ sent }) => sent > 0);
  const isKept = tellings.length > 0 && tellings.every(({ appliedMeanwhile }) => appliedMeanwhile > 0);
  const found = `applied while it was locked: ${holds.map((hold) => `${hold.appliedMeanwhile} of ${hold.sent}`).join(", ")}`;
  return [{ name, isKept, isTimed: false, found }];
}

function judgeLatencies({ answerMs, applyMs }: NeighbourReport["latencies"]["loud"]): Promised[] {
  const judge = (name: string, { p99 }: Latency, limitMs: number): Promised => ({
    ...{ name: `${name} within ${limitMs} ms (p99)`, isKept: p99 < limitMs, isTimed: true, found: `${p99} ms` },
  });
  return [judge("answered", answerMs, longestAnswerP99Ms), judge("applied", applyMs, longestApplyP99Ms)];
}

function judgeMemory({ name, residentMebibytes }: PeakMemory): Promised[] {
  const limit = Object.entries(residentLimitsMebibytes).find(([kind]) => name.startsWith(kind))?.[1];
  if (limit === undefined) return [];
  const found = `${residentMebibytes} MiB`;
  return [{ name: `${name} within ${limit} MiB`, isKept: residentMebibytes < limit, isTimed: false, found }];
}

function toLatency(timesMs: number[]): Latency {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const at = (fraction: number) =>
    Math.round(sorted[Math.ceil(fraction * sorted.length) - 1] ?? Number.POSITIVE_INFINITY);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

function countStatuses(run: {
  traffics: readonly Traffic[];
  wellBehaved: readonly string[];
  refused: ReadonlyMap<string, number>;
}): NeighbourReport["statuses"] {
  const all: NeighbourReport["statuses"] = { "well-behaved": {} };
  for (const { partner, statuses } of [...run.traffics, { partner: "strangers", statuses: run.refused }]) {
    const name = run.wellBehaved.includes(partner) ? "well-behaved" : partner;
    const counts = all[name] ?? {};
    for (const [status, count] of statuses) counts[status] = (counts[status] ?? 0) + count;
    all[name] = counts;
  }
  return all;
}

export function formatNeighbourReport(report: NeighbourReport): string {
  const { latencies, statuses, memory, cores, promises, ownDelayMs, tally } = report;
  const { quiet, loud } = latencies;
  return [
    "",
    "  Well-behaved partners, ms      alone: p50    p99    max   beside: p50    p99    max",
    formatLatencies("answered", quiet.answerMs, loud.answerMs),
    formatLatencies("applied", quiet.applyMs, loud.applyMs),
    `  No time is more exact than that: this command's own timers were up to ${ownDelayMs} ms late (p99).`,
    "",
    "  Requests by status",
    ...Object.entries(statuses).map(([name, counts]) => `  ${name.padEnd(20)}${formatCounts(counts)}`),
    `  ${tally.acknowledged.toLocaleString("en")} events acknowledged, ${tally.applied.toLocaleString("en")} applied, the last ${Math.round(report.drainedInMs / 1_000)} s after the last request`,
    "",
    "  Peak memory, MiB        resident    its own",
    ...memory.map(
      ({ name, residentMebibytes, ownMebibytes }) =>
        `  ${name.padEnd(20)}${String(residentMebibytes).padStart(12)}${String(ownMebibytes).padStart(11)}`,
    ),
    "",
    "  Cores in use beside the neighbours",
    `  ${Object.entries(cores)
      .map(([name, share]) => `${name} ${share}`)
      .join(", ")}`,
    "",
    "Promises:",
    ...promises.map(({ name, isKept, found }) => `  ${isKept ? "kept  " : "BROKEN"}  ${name}: ${found}`),
    "",
    ...formatViolations(report),
    `${report.passed ? "Passed" : "FAILED"}. Build ${report.build}, ${Math.round(report.tookMs / 1_000)} s in all.`,
  ].join("\n");
}

function formatLatencies(name: string, quiet: Latency, loud: Latency): string {
  const columns = ({ p50, p99, max }: Latency, width: number) =>
    `${String(p50).padStart(width)}${String(p99).padStart(7)}${String(max).padStart(7)}`;
  return `  ${name.padEnd(20)}${columns(quiet, 21)}${columns(loud, 14)}`;
}

function formatCounts(counts: Record<string, number>): string {
  return Object.entries(counts)
    .map(([status, count]) => `${status}: ${count.toLocaleString("en")}`)
    .join("  ");
}

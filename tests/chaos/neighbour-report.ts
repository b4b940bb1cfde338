import type { Statuses } from "./abuse-connections.ts";
import type { Hold } from "./lock-rows.ts";
import type { Attempt, Post } from "./post-events.ts";
import { format, formatVerdict, type Report } from "./report.ts";
import type { PeakMemory } from "./watch-memory.ts";

/** The outcome of one run, as it is written to the JSON report. */
export interface NeighbourReport extends Report, ReturnType<typeof judgeNeighbours> {
  scenario: "bad-neighbour";
  /** Everything went through `deploy/Caddyfile`. */
  isBehindProxy: boolean;
  quietMs: number;
  loudMs: number;
  /** From the last request until the queue was empty. */
  drainedInMs: number;
  /** How late this process's own timers were while it measured (p99): no time can be trusted beyond it. */
  ownDelayMs: number;
  memory: PeakMemory[];
}

interface Run {
  posts: readonly Post[];
  wellBehaved: readonly string[];
  loudFromMs: number;
  appliedAtMs: ReadonlyMap<string, number>;
  holds: readonly Hold[];
  /** What others than posts were answered; `lists` are those of a well-behaved partner. */
  statuses: Record<
    "lists" | "strangers" | "unfinished" | "slow lists" | "revoked secret" | "unknown path" | "HTTP/2",
    Statuses
  >;
  memory: readonly PeakMemory[];
}

/** The request of a well-behaved partner. */
interface Sent extends Attempt {
  /** Infinite for an event that was never applied. */
  appliedAtMs: number;
}

const longestAnswerP99Ms = 250;
const longestApplyP99Ms = 5_000;
/**
 * What `docker-compose.yml` gives each process. The most that a backend of PostgreSQL has ever used is 130: 51 of its
 * own, and shared buffers.
 */
const residentLimitsMebibytes = { ingest: 512, worker: 768, lookup: 512, caddy: 512, "postgres backend": 256 };
/** Before it, a batch that began without the lock may still be under way. */
const lockTakesHoldMs = 2_000;

export function judgeNeighbours(run: Run) {
  const { posts, wellBehaved, loudFromMs, appliedAtMs } = run;
  const toSent = (attempt: Attempt): Sent => {
    const eventId = attempt.end.result === "acknowledged" ? attempt.end.eventId : "";
    return { ...attempt, appliedAtMs: appliedAtMs.get(eventId) ?? Number.POSITIVE_INFINITY };
  };
  const sent = posts
    .filter(({ partner }) => wellBehaved.includes(partner))
    .flatMap(({ attempts }) => attempts.map(toSent));
  /** Of the well-behaved partners, from the sending of an event. */
  const latencies = {
    quiet: measure(sent.filter(({ sentAtMs }) => sentAtMs < loudFromMs)),
    loud: measure(sent.filter(({ sentAtMs }) => sentAtMs >= loudFromMs)),
  };
  /** Of their events that were sent while the row was locked, how many were applied before it was free again. */
  const holds = run.holds.map(({ fromMs, toMs }) => {
    const duringLock = sent.filter(({ sentAtMs }) => sentAtMs >= fromMs + lockTakesHoldMs && sentAtMs < toMs);
    const appliedMeanwhile = duringLock.filter(({ appliedAtMs }) => appliedAtMs < toMs).length;
    return { sent: duringLock.length, appliedMeanwhile };
  });
  const { answerMs, applyMs } = latencies.loud;
  const others = sent.filter(({ status }) => status !== 200).length;
  const usefulHolds = holds.filter((hold) => hold.sent > 0);
  const isNobodyHeldUp = usefulHolds.length > 0 && usefulHolds.every(({ appliedMeanwhile }) => appliedMeanwhile > 0);
  const applied = holds.map((hold) => `${hold.appliedMeanwhile} of ${hold.sent}`).join(", ");
  const promises = [
    // Timed: ingest answers 503 when Redis has not got an event on disk in time, and the disk may be slow.
    timed("every well-behaved request is answered 200", others === 0, `${others} of ${sent.length} otherwise`),
    // Even a slow machine applies some of these events, unless they wait in the queue for longer than the lock.
    untimed("a locked booking makes no other partner wait", isNobodyHeldUp, `applied while it was locked: ${applied}`),
    timed(`answered within ${longestAnswerP99Ms} ms (p99)`, answerMs.p99 < longestAnswerP99Ms, `${answerMs.p99} ms`),
    timed(`applied within ${longestApplyP99Ms} ms (p99)`, applyMs.p99 < longestApplyP99Ms, `${applyMs.p99} ms`),
    timed(
      "every list of a well-behaved partner is answered 200",
      areAllAnswered(run.statuses.lists),
      formatCounts(run.statuses.lists),
    ),
    untimed(
      "a revoked secret stays refused, although an old partners file has it",
      !("200" in run.statuses["revoked secret"]),
      formatCounts(run.statuses["revoked secret"]),
    ),
    untimed("no HTTP/2 is spoken", !("spoken" in run.statuses["HTTP/2"]), formatCounts(run.statuses["HTTP/2"])),
    ...run.memory.flatMap(judgeMemory),
  ];
  return { latencies, holds, promises, statuses: countStatuses(run) };
}

/** A slow or busy machine may break this promise. */
const timed = (name: string, isKept: boolean, found: string) => ({ name, isKept, isTimed: true, found });
const untimed = (name: string, isKept: boolean, found: string) => ({ name, isKept, isTimed: false, found });

function measure(sent: Sent[]) {
  const acknowledged = sent.filter(({ end }) => end.result === "acknowledged");
  return {
    answerMs: toLatency(sent.map(({ sentAtMs, endedAtMs }) => endedAtMs - sentAtMs)),
    applyMs: toLatency(acknowledged.map(({ sentAtMs, appliedAtMs }) => appliedAtMs - sentAtMs)),
  };
}

function toLatency(timesMs: number[]) {
  const sorted = timesMs.toSorted((a, b) => a - b);
  const at = (share: number) => Math.round(sorted[Math.ceil(share * sorted.length) - 1] ?? Number.POSITIVE_INFINITY);
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

function areAllAnswered(statuses: Statuses): boolean {
  return Object.keys(statuses).join() === "200";
}

function judgeMemory({ name, residentMebibytes }: PeakMemory) {
  const limit = Object.entries(residentLimitsMebibytes).find(([kind]) => name.startsWith(kind))?.[1];
  if (limit === undefined) return [];
  return [untimed(`${name} within ${limit} MiB`, residentMebibytes < limit, `${residentMebibytes} MiB`)];
}

/** How often each status came; "none": no answer. */
function countStatuses({ posts, wellBehaved, statuses: others }: Run): Record<string, Statuses> {
  const statuses: Record<string, Record<string, number>> = { "well-behaved": {} };
  for (const { partner, attempts } of posts) {
    const name = wellBehaved.includes(partner) ? "well-behaved" : partner;
    const counts = statuses[name] ?? {};
    for (const { status = "none" } of attempts) counts[status] = (counts[status] ?? 0) + 1;
    statuses[name] = counts;
  }
  return { ...statuses, ...others };
}

export function formatNeighbourReport(report: NeighbourReport): string {
  const { latencies, statuses, memory, promises, ownDelayMs, tally, build } = report;
  const { quiet, loud } = latencies;
  const drainedInS = Math.round(report.drainedInMs / 1_000);
  return [
    "",
    report.isBehindProxy ? "Everything went through Caddy." : "There was no Caddy: nothing is said about the proxy.",
    formatRow("Well-behaved partners, ms", ["p50", "p99", "max"]),
    formatRow("answered, alone", Object.values(quiet.answerMs)),
    formatRow("answered, beside the neighbours", Object.values(loud.answerMs)),
    formatRow("applied, alone", Object.values(quiet.applyMs)),
    formatRow("applied, beside the neighbours", Object.values(loud.applyMs)),
    `  No time is more exact than that: this command's own timers were up to ${ownDelayMs} ms late (p99).`,
    "",
    "  Requests by status",
    ...Object.entries(statuses).map(([name, counts]) => `  ${name.padEnd(20)}${formatCounts(counts)}`),
    `  ${format(tally.acknowledged)} events acknowledged, ${format(tally.applied)} applied,` +
      ` the last ${drainedInS} s after the last request`,
    "",
    formatRow("Peak memory, MiB", ["resident", "its own"]),
    ...memory.map(({ name, residentMebibytes, ownMebibytes }) => formatRow(name, [residentMebibytes, ownMebibytes])),
    "",
    "Promises:",
    ...promises.map(({ name, isKept, found }) => `  ${isKept ? "kept  " : "BROKEN"}  ${name}: ${found}`),
    ...formatVerdict(report, `Build ${build}`),
  ].join("\n");
}

function formatRow(name: string, columns: (number | string)[]): string {
  return `  ${name.padEnd(32)}${columns.map((column) => String(column).padStart(10)).join("")}`;
}

function formatCounts(counts: Statuses): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name}: ${format(count)}`)
    .join("  ");
}

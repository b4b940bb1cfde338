import { ClockLimit, describeDifference, maxClockDifferenceMs } from "./clock-limit.ts";

/** What a server says about the time. */
export interface ServerTime {
  /** How far its clock is ahead of this host's. */
  clockAheadMs: number;
  /** When the newest event that it knows was received, in milliseconds since 1970; null: it knows none. */
  newestEventMs: number | null;
}

/** What is compared with this host's clock. */
export interface ServerTimes {
  /** Undefined: it is not known. */
  postgresql: ServerTime | undefined;
  /** One for each shard. */
  redis: ServerTime[];
}

interface ClockReading {
  /** Whose it is, as a possessive. */
  owner: string;
  aheadMs: number;
}

const remedy = "timedatectl set-ntp true";

/**
 * Compares clocks with each other and with the newest event, again and again. An event that was received later than
 * now shows that a clock is or was wrong, although all agree. One that was received long ago shows nothing.
 */
export class ClockComparison {
  readonly #difference = new Verdict();
  readonly #newest = new Verdict();
  #isHostWrong = false;

  /** Whether PostgreSQL's clock and Redis' agree, and this host's differs from them. */
  get isHostWrong(): boolean {
    return this.#isHostWrong;
  }

  /** @returns which clock is wrong and what to do, in a sentence for an operator; null: they agree */
  findProblem({ postgresql, redis }: ServerTimes): string | null {
    const servers = [
      ...(postgresql === undefined ? [] : [{ owner: "PostgreSQL's", ...postgresql }]),
      ...redis.map((time) => ({ owner: "Redis'", ...time })),
    ];
    const clocks = [
      { owner: "this host's", aheadMs: 0 },
      ...servers.map(({ owner, clockAheadMs }) => ({ owner, aheadMs: clockAheadMs })),
    ].toSorted((a, b) => a.aheadMs - b.aheadMs);
    const [first, last] = [clocks[0] as ClockReading, clocks.at(-1) as ClockReading];
    const difference = this.#difference.judge(last.aheadMs - first.aheadMs, (ms) => describeClocks(clocks, ms));
    const aheads = servers.map(({ clockAheadMs }) => clockAheadMs);
    this.#isHostWrong = difference !== null && aheads.length > 1 && agree(aheads);
    const newestMs = Math.max(0, ...servers.map(({ newestEventMs }) => newestEventMs ?? 0));
    const laterMs = Math.max(newestMs - Date.now() - first.aheadMs, 0);
    const newest = this.#newest.judge(laterMs, (ms) => describeNewest(first, ms));
    return difference ?? newest;
  }
}

/** A limit, and the sentence for the difference that it reports. */
class Verdict {
  readonly #limit = new ClockLimit();
  #reportedMs: number | null = null;
  #sentence: string | null = null;

  judge(differenceMs: number, describe: (ms: number) => string): string | null {
    const reportedMs = this.#limit.judge(differenceMs);
    if (reportedMs !== this.#reportedMs) this.#sentence = reportedMs === null ? null : describe(reportedMs);
    this.#reportedMs = reportedMs;
    return this.#sentence;
  }
}

/** @param clocks from the earliest to the latest */
function describeClocks(clocks: ClockReading[], differenceMs: number): string {
  const [first, last] = [clocks[0] as ClockReading, clocks.at(-1) as ClockReading];
  const difference = describeDifference(differenceMs);
  const [afterFirst, beforeLast] = [clocks.slice(1), clocks.slice(0, -1)];
  if (clocks.length > 2 && agree(beforeLast.map(({ aheadMs }) => aheadMs)))
    return `${begin(last)} clock is ${difference} ahead of ${list(beforeLast)}. Correct it: ${remedy}`;
  if (clocks.length > 2 && agree(afterFirst.map(({ aheadMs }) => aheadMs)))
    return `${begin(first)} clock is ${difference} behind ${list(afterFirst)}. Correct it: ${remedy}`;
  const [one, other] = first.aheadMs === 0 ? [last, first] : [first, last];
  return `${begin(one)} clock is ${difference} ${one === last ? "ahead of" : "behind"} ${other.owner}. Correct the wrong clock: ${remedy}`;
}

function describeNewest(earliest: ClockReading, laterMs: number): string {
  return (
    `The newest event was received ${describeDifference(laterMs)} later than ${earliest.owner} clock shows. Correct ` +
    'the wrong clock. If none is wrong, see "The sequence is far ahead or behind" in docs/runbook.md.'
  );
}

function agree(aheadsMs: number[]): boolean {
  return Math.max(...aheadsMs) - Math.min(...aheadsMs) <= maxClockDifferenceMs;
}

function list(clocks: ClockReading[]): string {
  return new Intl.ListFormat("en").format([...new Set(clocks.map(({ owner }) => owner))].toSorted());
}

function begin({ owner }: ClockReading): string {
  return owner.charAt(0).toUpperCase() + owner.slice(1);
}

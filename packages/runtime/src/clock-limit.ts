/** Clocks that are synchronized by NTP differ by far less. Kerberos allows the same. */
export const maxClockDifferenceMs = 5 * 60_000;
/** Clocks that have differed by more must come closer than this, before they count as right again. */
const agreedDifferenceMs = 4.5 * 60_000;
/** A reported difference is right to within a minute, or to within a tenth of it. */
const reportedToWithin = { ms: 60_000, share: 0.1 };

/**
 * Judges one difference between clocks again and again. Measurements vary. Near the limit, its judgement does not, and
 * what it reports stays the same while it is about right. So nothing is logged several times.
 */
export class ClockLimit {
  #reportedMs: number | null = null;

  /** @returns the difference to report, whose sign is that of the given one; null: it is within the limit */
  judge(differenceMs: number): number | null {
    const limitMs = this.#reportedMs === null ? maxClockDifferenceMs : agreedDifferenceMs;
    if (Math.abs(differenceMs) <= limitMs) this.#reportedMs = null;
    else if (this.#reportedMs === null || !isAbout(this.#reportedMs, differenceMs)) this.#reportedMs = differenceMs;
    return this.#reportedMs;
  }
}

function isAbout(reportedMs: number, differenceMs: number): boolean {
  const toWithinMs = Math.max(reportedToWithin.ms, Math.abs(reportedMs) * reportedToWithin.share);
  return Math.abs(differenceMs - reportedMs) <= toWithinMs;
}

const units: [name: string, ms: number][] = [
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
];

/** @returns such as "440 days", in the largest unit of which there are about two */
export function describeDifference(ms: number): string {
  const [name, unitMs] = units.find(([, inMs]) => Math.abs(ms) >= 1.9 * inMs) ?? ["second", 1_000];
  const count = Math.round(Math.abs(ms) / unitMs);
  return `${count} ${name}${count === 1 ? "" : "s"}`;
}

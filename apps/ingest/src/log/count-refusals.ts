import type { Logger } from "@booking-events/runtime";
import type { ObservedRequest } from "./observe-requests.ts";
import { toSender } from "./to-sender.ts";

export interface RefusalCounter {
  /**
   * Whether the request only repeats a refusal that the log has named, or is one too many to be named: then it is
   * counted, and needs no line of its own.
   */
  countRepeat(refused: ObservedRequest): boolean;
  /** Writes what has been counted and not written yet. */
  flush(): void;
}

/**
 * A series is the refusals of one sender with one cause. Each costs two lines a second at most, so that these limits
 * bound what a flood of refused requests can write: about half a megabyte a second.
 */
const refusalLimits = {
  /** How often counts are written. A series without a refusal for that long is forgotten. */
  intervalMs: 1_000,
  /** At a time, of senders without a valid secret. Far fewer than there are addresses to send from. */
  maxStrangerSeries: 100,
  /** At a time, of partners: a limit of their own, so that strangers can't use it up. */
  maxPartnerSeries: 1_000,
};

interface Series {
  /** What its lines say besides the count. */
  fields: Pick<ObservedRequest, "partner" | "ip" | "status" | "outcome" | "cause">;
  /** Since the last line. */
  repeated: number;
}

interface Group {
  series: Map<string, Series>;
  maxSeries: number;
  /** Refusals that found no place among the series, by outcome. */
  others: Map<string, number>;
  othersMessage: string;
}

/** Keeps whoever is refused again and again from filling the log. */
export function createRefusalCounter(logger: Logger, limits = refusalLimits): RefusalCounter {
  const strangers = createGroup(limits.maxStrangerSeries, "requests of other addresses refused");
  const partners = createGroup(limits.maxPartnerSeries, "requests of other partners refused");
  let timer: NodeJS.Timeout | undefined;

  function countRepeat({ partner, ip, status, outcome, cause, err }: ObservedRequest): boolean {
    timer ??= setTimeout(writeCounts, limits.intervalMs).unref();
    const group = partner === undefined ? strangers : partners;
    const reason = cause ?? (err instanceof Error ? err.name : "");
    const key = `${partner ?? toSender(ip ?? "")} ${status} ${outcome} ${reason}`;
    const known = group.series.get(key);
    if (known !== undefined) {
      known.repeated += 1;
      return true;
    }
    if (group.series.size >= group.maxSeries) {
      group.others.set(outcome, (group.others.get(outcome) ?? 0) + 1);
      return true;
    }
    group.series.set(key, { fields: { partner, ip, status, outcome, cause }, repeated: 0 });
    return false;
  }

  function writeCounts(): void {
    clearTimeout(timer);
    timer = undefined;
    for (const group of [strangers, partners]) writeCountsOf(group);
    if (strangers.series.size + partners.series.size > 0) timer = setTimeout(writeCounts, limits.intervalMs).unref();
  }

  function writeCountsOf({ series, others, othersMessage }: Group): void {
    for (const [key, one] of series) {
      if (one.repeated === 0) {
        series.delete(key);
        continue;
      }
      const { fields, repeated } = one;
      logger[fields.status === 500 ? "error" : "info"]({ ...fields, repeated }, "request repeated");
      one.repeated = 0;
    }
    if (others.size === 0) return;
    const repeated = [...others.values()].reduce((sum, count) => sum + count, 0);
    logger.info({ repeated, outcomes: Object.fromEntries(others) }, othersMessage);
    others.clear();
  }

  return { countRepeat, flush: writeCounts };
}

function createGroup(maxSeries: number, othersMessage: string): Group {
  return { series: new Map(), maxSeries, others: new Map(), othersMessage };
}

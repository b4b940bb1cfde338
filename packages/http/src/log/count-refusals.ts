import type { Logger } from "@booking-events/runtime";
import { toSender } from "../partners/to-sender.ts";
import type { ObservedRequest } from "./observed-request.ts";

/** What tells refusals apart. */
type Refused = Pick<ObservedRequest, "partner" | "ip" | "status" | "outcome" | "cause" | "err">;

export type RefusalCounter = ReturnType<typeof createRefusalCounter>;

/**
 * A series is the refusals of one sender with one cause. Each takes at most two lines a second, so these limits bound
 * what a flood of refused requests can write to about half a megabyte a second.
 */
const refusalLimits = {
  /** How often counts are logged. A series without a refusal during an interval is forgotten. */
  intervalMs: 1_000,
  /** The maximum number of series of senders without a valid secret, far fewer than there are addresses. */
  maxStrangerSeries: 100,
  /** The maximum number of series of partners. It is separate so that strangers cannot use it up. */
  maxPartnerSeries: 1_000,
};

interface Series {
  /** The fields of its log lines besides the count. */
  fields: Omit<Refused, "err">;
  /** Refusals since the last log line. */
  repeated: number;
}

interface Group {
  series: Map<string, Series>;
  maxSeries: number;
  /** Refusals that belong to no series because there are too many, by outcome. */
  others: Map<string, number>;
  othersMessage: string;
}

/** Prevents senders that are refused repeatedly from filling the log. */
export function createRefusalCounter(logger: Logger, limits = refusalLimits) {
  const strangers = createGroup(limits.maxStrangerSeries, "requests of other addresses refused");
  const partners = createGroup(limits.maxPartnerSeries, "requests of other partners refused");
  let timer: NodeJS.Timeout | undefined;

  /**
   * Counts the request and returns true if it needs no log line of its own: it repeats a refusal that has been logged,
   * or there are too many different refusals to log each one.
   */
  function countRepeat({ partner, ip, status, outcome, cause, err }: Refused): boolean {
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

  /** Logs the counts that have not been logged. */
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

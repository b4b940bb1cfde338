import type { Shortage } from "@booking-events/operations";
import type { Context } from "../../context.ts";
import { printLine } from "../../terminal/print.ts";

export type Progress = ReturnType<typeof createProgress>;

const intervalMs = 10_000;

/** Counts, and says every ten seconds how far the import is. */
export function createProgress({ stderr }: Pick<Context, "stderr">) {
  const counts = { lines: 0, queued: 0, known: 0, rejected: 0 };
  const startedAtMs = performance.now();
  let reportedAtMs = startedAtMs;

  function report(remark = ""): void {
    const nowMs = performance.now();
    if (nowMs - reportedAtMs < intervalMs) return;
    reportedAtMs = nowMs;
    const perSecond = Math.round((counts.lines * 1_000) / (nowMs - startedAtMs));
    printLine(stderr, `${counts.lines} lines, ${perSecond}/s, ${counts.rejected} rejected.${remark}`);
  }

  return {
    counts,
    count(what: keyof typeof counts, by = 1): void {
      counts[what] += by;
      if (what === "lines") report();
    },
    /** Call this while the queue has no room. */
    wait({ reason, advice }: Shortage): void {
      report(` Waiting, since ${reason}. ${advice}`);
    },
  };
}

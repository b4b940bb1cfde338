import type { Context } from "../../context.ts";
import { printLine } from "../../terminal/print.ts";
import type { Shortage } from "./queue-events.ts";

export interface Counts {
  lines: number;
  queued: number;
  known: number;
  rejected: number;
}

export interface Progress {
  counts: Readonly<Counts>;
  count: (what: keyof Counts, by?: number) => void;
  /** Call this while the queue has no room. */
  wait: (shortage: Shortage) => void;
  /** Call this before another line is printed. */
  hide: () => void;
}

const intervalMs = 500;
/** Without a terminal, a wait is reported once it has taken this long. */
const longWaitMs = 10_000;
const eraseLine = "\r\u001b[K";

/** On a terminal, shows how far the import is. */
export function createProgress({ stderr }: Pick<Context, "stderr">): Progress {
  const counts: Counts = { lines: 0, queued: 0, known: 0, rejected: 0 };
  const startedAtMs = performance.now();
  let shownAtMs = startedAtMs;
  let isShown = false;
  let countedAtMs = startedAtMs;
  let isWaitReported = false;

  function show(suffix = ""): void {
    const nowMs = performance.now();
    if (stderr.isTTY !== true || nowMs - shownAtMs < intervalMs) return;
    shownAtMs = nowMs;
    isShown = true;
    const perSecond = Math.round((counts.lines * 1_000) / (nowMs - startedAtMs));
    stderr.write(`${eraseLine}${counts.lines} lines, ${perSecond}/s, ${counts.rejected} rejected${suffix}`);
  }

  function hide(): void {
    if (isShown) stderr.write(eraseLine);
    isShown = false;
  }

  return {
    counts,
    count(what, by = 1) {
      counts[what] += by;
      countedAtMs = performance.now();
      isWaitReported = false;
      if (what === "lines") show();
    },
    wait({ reason, advice }) {
      show(`, waiting: ${reason}`);
      if (stderr.isTTY === true || isWaitReported || performance.now() - countedAtMs < longWaitMs) return;
      isWaitReported = true;
      printLine(stderr, `Waiting, since ${reason}. ${advice}`);
    },
    hide,
  };
}

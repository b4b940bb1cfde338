import {
  type ActingContext,
  planRestore,
  type RestoreProgress,
  type RestoreRequest,
  RestoreSummary,
  restoreBookings,
} from "@booking-events/operations";
import type { Task, Tasks } from "../tasks/tasks.ts";
import type { RestoreReport } from "./restore-report.ts";

/** More of them are counted, and not shown. */
const maxShown = 200;

/** Begins a restore, or its preview, as a task. */
export function runRestore(
  tasks: Tasks,
  operations: ActingContext,
  request: RestoreRequest,
  { isPreview }: { isPreview: boolean },
): Promise<Task> {
  const summary = new RestoreSummary({ maxShown });
  const isTest = operations.isTest === true;
  const report: RestoreReport = {
    kind: "restore",
    isPreview,
    isTest,
    request,
    summary,
    waitsFor: null,
    restored: null,
  };
  return tasks.begin(operations, report, async (acting, signal) => {
    const progress = toProgress(report, signal);
    report.restored = await (isPreview
      ? planRestore(acting, request, progress)
      : restoreBookings(acting, request, progress));
    report.waitsFor = null;
  });
}

function toProgress(report: RestoreReport, signal: AbortSignal): RestoreProgress {
  const { summary } = report;
  return {
    signal,
    plan: (booking) => summary.add(booking),
    count(_what, by) {
      summary.queued += by;
      report.waitsFor = null;
    },
    wait({ reason, advice }) {
      report.waitsFor = `${reason}. ${advice}`;
    },
  };
}

import { setTimeout as sleepByTimer } from "node:timers/promises";
import type { Logger } from "@booking-events/runtime";
import type { Maintained } from "@booking-events/store";
import { classifyFault } from "./outages/classify-fault.ts";
import type { MaintenanceMetrics } from "./watch/maintenance-metrics.ts";
import { ReportedProblems } from "./watch/reported-problems.ts";

const intervalMs = 10 * 60 * 1_000;
/** A run that has more to do lets others use the database before the next one. */
const intervalIfMoreMs = 10_000;

/**
 * Maintains the database now and then, until the signal aborts. Any number of workers may do so: see `maintain`. What
 * fails is logged and tried again, and events are applied meanwhile.
 *
 * @param options.maintain one bounded run
 * @param options.sleep rejects when the signal aborts
 */
export async function maintainRegularly(options: {
  maintain: () => Promise<Maintained>;
  estimateDefaultPartition: () => Promise<number>;
  metrics: MaintenanceMetrics;
  logger: Logger;
  signal: AbortSignal;
  sleep?: (delayMs: number, value: undefined, options: { signal: AbortSignal }) => Promise<unknown>;
}): Promise<void> {
  const { maintain, estimateDefaultPartition, metrics, logger, signal, sleep = sleepByTimer } = options;
  const problems = new ReportedProblems((found) => {
    if (found.length > 0) logger.error({ problems: found }, "the database is not fully maintained");
  });
  while (!signal.aborted) {
    let hasMore = false;
    try {
      const done = await maintain();
      hasMore = done.hasMore;
      metrics.record(done, await estimateDefaultPartition());
      problems.report(done.problems);
      const { removed, createdPartitions, droppedPartitions } = done;
      const removedRows = Object.values(removed).reduce((sum, rows) => sum + rows);
      if (removedRows + createdPartitions.length + droppedPartitions.length > 0)
        logger.info({ removed, createdPartitions, droppedPartitions }, "maintained the database");
      if (done.removedOpenLetters > 0)
        logger.warn(
          { count: done.removedOpenLetters },
          "removed open dead letters, whose events are older than the log",
        );
    } catch (error) {
      if (signal.aborted) return;
      problems.report([`PostgreSQL failed with ${classifyFault(error).code}.`]);
    }
    await sleep(hasMore ? intervalIfMoreMs : intervalMs, undefined, { signal }).catch(() => {});
  }
}

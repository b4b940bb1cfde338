import { readRedisTimes } from "@booking-events/queue";
import { ClockComparison } from "@booking-events/runtime";
import {
  type Maintained,
  type MaintenanceOptions,
  maintain,
  type RetentionRules,
  testRetention,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { type Context, inBoth } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { withRedis } from "../services/queue.ts";
import { readWorkerRules } from "../services/worker-rules.ts";

/**
 * Creates partitions, and removes what is too old, as workers do by themselves.
 *
 * @param tell called with what each step has done
 */
export async function maintainDatabase(
  context: ActingContext,
  tell: (done: Maintained, isTest: boolean) => void,
): Promise<void> {
  const { retention } = await readWorkerRules(context);
  await recordAction(context, { command: "maintain", arguments: retention }, (record) => {
    const did = { createdPartitions: 0, droppedPartitions: 0, rows: 0 };
    record.did = did;
    return maintainAll(context, retention, (done, isTest) => {
      did.createdPartitions += done.createdPartitions.length;
      did.droppedPartitions += done.droppedPartitions.length;
      did.rows += Object.values(done.removed).reduce((sum, rows) => sum + rows, 0);
      tell(done, isTest);
    });
  });
}

async function maintainAll(
  context: Context,
  retention: RetentionRules,
  tell: (done: Maintained, isTest: boolean) => void,
): Promise<void> {
  const comparison = new ClockComparison();
  const findClockProblem: MaintenanceOptions["findClockProblem"] = async (postgresql) =>
    comparison.findProblem({ postgresql, redis: await withRedis(context, readRedisTimes) });
  await inBoth(context, (each) =>
    withDatabase(each, async (pool) => {
      for (let hasMore = true; hasMore; ) {
        const done = await maintain(pool, each.isTest ? testRetention : retention, { findClockProblem });
        tell(done, each.isTest === true);
        if (done.problems.length > 0) throw new OperationFailure(done.problems.join(" "));
        if (done.isBusy) throw new OperationFailure("Another process maintains the database. Try again later.");
        if (done.isLocked)
          throw new OperationFailure("Others have locked a table for more than a second. Try again later.");
        hasMore = done.hasMore;
      }
    }),
  );
}

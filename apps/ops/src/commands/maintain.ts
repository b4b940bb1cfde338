import { readRedisTimes } from "@booking-events/queue";
import { ClockComparison } from "@booking-events/runtime";
import { type Maintained, type MaintenanceOptions, maintain } from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { readRetentionRules, withDatabase } from "../database.ts";
import { withRedis } from "../queue.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { describeCount } from "../terminal/describe.ts";
import { printLine } from "../terminal/print.ts";

export function addMaintainCommand(program: Command, context: Context): void {
  program
    .command("maintain")
    .summary("create partitions, and remove what is too old")
    .description(
      "Create the log's partitions of the next months, and remove what is older than RETENTION_DAYS, " +
        "DELETED_RETENTION_DAYS and DEAD_LETTER_RETENTION_DAYS, which must have the worker's values. Workers do the " +
        "same by themselves. What another process does or locks at the moment is left alone. Removed data does not " +
        "come back: see what would go with retention --dry-run. Nothing is removed while the clocks of PostgreSQL, " +
        "Redis and this host differ by more than five minutes.",
    )
    .action(async () => {
      const rules = readRetentionRules(context);
      const comparison = new ClockComparison();
      const findClockProblem: MaintenanceOptions["findClockProblem"] = async (postgresql) =>
        comparison.findProblem({ postgresql, redis: await withRedis(context, readRedisTimes) });
      await withDatabase(context, async (pool) => {
        let hasDoneAnything = false;
        for (;;) {
          const done = await maintain(pool, rules, { findClockProblem });
          const lines = describe(done);
          hasDoneAnything ||= lines.length > 0;
          for (const line of lines) printLine(context.stdout, line);
          if (done.problems.length > 0) throw new CommandFailure(done.problems.join(" "));
          if (done.isBusy) throw new CommandFailure("Another process maintains the database. Try again later.");
          if (done.isLocked)
            throw new CommandFailure("Others have locked a table for more than a second. Try again later.");
          if (!done.hasMore) break;
        }
        if (!hasDoneAnything) printLine(context.stdout, "Nothing to do.");
      });
    });
}

function describe({ removed, removedOpenLetters, ...done }: Maintained) {
  const { booking_events, booking_changes, bookings, dead_letters } = removed;
  return [
    ...done.createdPartitions.map((name) => `Created partition ${name}`),
    ...done.droppedPartitions.map((name) => `Dropped partition ${name}`),
    ...countLine("Removed", booking_events, "event"),
    ...countLine("Removed", booking_changes, "change"),
    ...countLine("Removed the content of", bookings, "deleted booking"),
    ...countLine("Removed", dead_letters, "dead letter"),
    ...countLine("Of these, open:", removedOpenLetters, "dead letter"),
  ];
}

function countLine(what: string, count: number, thing: string): string[] {
  return count === 0 ? [] : [`${what} ${describeCount(count, thing)}`];
}

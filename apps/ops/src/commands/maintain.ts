import { describeCount, type Maintained, maintainDatabase } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printLine } from "../terminal/print.ts";

export function addMaintainCommand(program: Command, context: Context): void {
  program
    .command("maintain")
    .summary("create partitions, and remove what is too old")
    .description(
      "Create the log's partitions of the next months, and remove what is older than RETENTION_DAYS, " +
        "DELETED_RETENTION_DAYS and DEAD_LETTER_RETENTION_DAYS of the workers. Workers do the same by themselves. What " +
        "another process does or locks at the moment is left alone. Removed data does not come back: see what would go " +
        "with retention --dry-run. Nothing is removed while the clocks of PostgreSQL, Redis and this host differ by more " +
        "than five minutes.",
    )
    .addOption(byOption())
    .action(async ({ by }) => {
      let hasDoneAnything = false;
      await maintainDatabase(actAs(context, by), (done, isTest) => {
        const lines = isTest ? describeTests(done) : describe(done);
        hasDoneAnything ||= lines.length > 0;
        for (const line of lines) printLine(context.stdout, line);
      });
      if (!hasDoneAnything) printLine(context.stdout, "Nothing to do.");
    });
}

function describe({ removed, removedOpenLetters, ...done }: Maintained) {
  const { booking_events, booking_changes, bookings, dead_letters, operator_actions } = removed;
  return [
    ...done.createdPartitions.map((name) => `Created partition ${name}`),
    ...done.droppedPartitions.map((name) => `Dropped partition ${name}`),
    ...countLine("Removed", booking_events, "event"),
    ...countLine("Removed", booking_changes, "change"),
    ...countLine("Removed the content of", bookings, "deleted booking"),
    ...countLine("Removed", dead_letters, "dead letter"),
    ...countLine("Of these, open:", removedOpenLetters, "dead letter"),
    ...countLine("Removed", operator_actions, "recorded action"),
  ];
}

/** What was removed of test partners is no loss. */
function describeTests({ removed }: Maintained): string[] {
  const { booking_events: events, bookings } = removed;
  return events + bookings === 0
    ? []
    : [`Removed ${describeCount(bookings, "booking")} and ${describeCount(events, "event")} of test partners`];
}

function countLine(what: string, count: number, thing: string): string[] {
  return count === 0 ? [] : [`${what} ${describeCount(count, thing)}`];
}

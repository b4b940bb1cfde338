import {
  describeCount,
  estimateRemovals,
  type Maintained,
  maintainDatabase,
  type Removal,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import type { Column } from "../terminal/format-table.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printLine, printRows } from "../terminal/print.ts";

export function addMaintainCommand(program: Command, context: Context): void {
  program
    .command("maintain")
    .description(
      "Create partitions, and remove what is too old: partitions of the log for the next months, and what is older than RETENTION_DAYS, " +
        "DELETED_RETENTION_DAYS and DEAD_LETTER_RETENTION_DAYS, which must have the worker's values. Workers do the " +
        "same by themselves. What another process does or locks at the moment is left alone. Removed data does not " +
        "come back: see what would go with --dry-run. Nothing is removed while the clocks of PostgreSQL, " +
        "Redis and this host differ by more than five minutes.",
    )
    .option(
      "--dry-run",
      "only show what would be removed; of tables over 16 MB, rows and bytes are PostgreSQL's estimates",
    )
    .option(
      "--json",
      "with --dry-run, print a JSON array: table, what, before, rows, bytes (null: kept forever, for the last three)",
    )
    .addOption(byOption())
    .action(async ({ dryRun, json, by }) => {
      if (dryRun)
        return printRows(context.stdout, columns, await estimateRemovals(context), { json, none: "Nothing." });
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

const columns: Column<Removal>[] = [
  { header: "TABLE", value: ({ table }) => table },
  { header: "WHAT", value: ({ what }) => what },
  { header: "FROM BEFORE", value: ({ before }) => before?.toISOString().slice(0, 10) ?? "kept forever" },
  { header: "ROWS", value: ({ rows }) => rows?.toLocaleString("en") ?? "" },
  { header: "BYTES", value: ({ bytes }) => bytes?.toLocaleString("en") ?? "" },
];

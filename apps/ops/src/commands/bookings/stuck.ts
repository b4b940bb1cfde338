import { findStuck, type StuckEvent, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { limitOption, partnerOption } from "../../terminal/arguments.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../../terminal/print.ts";
import { referenceColumn } from "../../terminal/reference.ts";

const maxLimit = 1_000;

export function addStuckCommand(bookings: Command, context: Context): void {
  bookings
    .command("stuck")
    .description(
      "List the events that were accepted and are not applied, the oldest first: those that wait for a worker, are held " +
        "by one, are delayed until their next attempt, or are dead letters; with why, and when they are tried again.",
    )
    .addOption(partnerOption("only events"))
    .addOption(limitOption(50, maxLimit))
    .option(
      "--json",
      "print a JSON object: events (id, partner, referenceKind, reference, kind, status, receivedAt, nextAttemptAt, " +
        "failedAttempts, why), total (how many are in the queue), looked (how many of them were looked at)",
    )
    .addHelpText(
      "after",
      `
It needs DATABASE_URL and REDIS_URL. To try delayed events now: ops queue retry-now. To apply dead letters again, fix the
cause, and then: ops dead-letters replay.

Example:
  $ ops bookings stuck --partner acme`,
    )
    .action(async ({ partner, limit, json }) => {
      const { events, total, looked } = await findStuck(context, { partner, limit });
      if (json) return printJson(context.stdout, { events, total, looked });
      if (events.length === 0) printLine(context.stdout, "No event waits, and there are no open dead letters.");
      else printTable(context.stdout, columns, events);
      if (events.length === limit) printLine(context.stderr, `There may be more. Show up to ${maxLimit} with --limit.`);
      if (looked < total) printLine(context.stderr, `${looked} of ${total} events in the queue were looked at.`);
    });
}

const columns: Column<StuckEvent>[] = [
  { header: "RECEIVED", value: ({ receivedAt }) => (receivedAt === null ? "?" : toSeconds(receivedAt)) },
  { header: "PARTNER", value: ({ partner }) => partner ?? "?" },
  referenceColumn,
  { header: "KIND", value: ({ kind }) => kind ?? "?" },
  { header: "STATUS", value: ({ status }) => status },
  { header: "EVENT ID", value: ({ id }) => id },
  { header: "WHY", value: ({ why }) => why },
];

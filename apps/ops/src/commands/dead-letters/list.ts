import { type DeadLetter, findLetters, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { limitOption, partnerOption } from "../../terminal/arguments.ts";
import { parsePast } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printPage } from "../../terminal/print.ts";
import { referenceColumn } from "../../terminal/reference.ts";
import { describeState } from "./letters.ts";

export function addListCommand(deadLetters: Command, context: Context): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  deadLetters
    .command("list")
    .description("List open dead letters, oldest first. Shows no personal data.")
    .addOption(partnerOption("only dead letters"))
    .option("--code <code>", "only dead letters with this error code")
    .option("--since <time>", "only what failed since, such as 02:00 (in UTC) or 2h (ago)", parseTime)
    .option("--until <time>", "only what failed before", parseTime)
    .option("--resolved", "closed dead letters too")
    .addOption(limitOption(100, 10_000))
    .option(
      "--json",
      "print a JSON array: eventId, partner, kind, referenceKind, reference, sequence, arrivalDay, errorCode, error, " +
        "attempts, failedAt, replayedAt, replayedBy, resolvedAt, resolvedBy, resolution",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ ops dead-letters list --code STALLED
  $ ops dead-letters list --json | jq -r .[].eventId`,
    )
    .action(async ({ partner, code, resolved, limit, json, ...times }) => {
      const filter = { ...times, partner, errorCode: code, includeResolved: resolved === true, limit: limit + 1 };
      const shown = resolved ? [...columns, stateColumn] : columns;
      printPage(context, shown, await findLetters(context, filter), { limit, json, none: "No dead letters." });
    });
}

const columns: Column<DeadLetter>[] = [
  { header: "FAILED", value: ({ failedAt }) => toSeconds(failedAt) },
  { header: "CODE", value: ({ errorCode }) => errorCode },
  { header: "ATTEMPTS", value: ({ attempts }) => String(attempts) },
  { header: "EVENT ID", value: ({ eventId }) => eventId },
  { header: "KIND", value: ({ kind }) => kind ?? "?" },
  { header: "PARTNER", value: ({ partner }) => partner ?? "?" },
  referenceColumn,
];
const stateColumn: Column<DeadLetter> = { header: "STATE", value: describeState };

import { describeValues, listActions, type OperatorAction, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { limitOption } from "../terminal/arguments.ts";
import { parsePast } from "../terminal/duration.ts";
import type { Column } from "../terminal/format-table.ts";
import { printPage } from "../terminal/print.ts";

export function addAuditCommand(program: Command, context: Context): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  program
    .command("audit")
    .description(
      "List what operators did, newest first: each command that changes something or exports data, with its arguments, how it ended, and " +
        "what it changed. Holds nothing of a guest, and no secret.",
    )
    .option("--since <time>", "only since then, such as 2026-11-20T12:00:00Z, 02:00 (in UTC) or 1h (ago)", parseTime)
    .option("--until <time>", "only before", parseTime)
    .option("--by <name>", "only of this operator")
    .addOption(limitOption(100, 10_000))
    .option(
      "--json",
      "print a JSON array: id, at, endedAt, by, command, arguments, outcome (done, refused, failed, cancelled or unknown), problem, did",
    )
    .addHelpText(
      "after",
      `
Unknown: it goes on, or its process ended before it could record the end. What was done while PostgreSQL could not be
reached is missing: the command said so.

Examples:
  $ ops audit --since 1d
  $ ops audit --json | jq '.[] | select(.command == "partners revoke")'`,
    )
    .action(async ({ limit, json, ...filter }) => {
      const found = await listActions(context, { ...filter, limit: limit + 1 });
      const shown = found.map((action) => ({ ...action, outcome: action.outcome ?? "unknown" }));
      printPage(context, columns, shown, { limit, json, none: "No such actions are recorded." });
    });
}

type Shown = Omit<OperatorAction, "outcome"> & { outcome: string };

const columns: Column<Shown>[] = [
  { header: "TIME", value: ({ at }) => toSeconds(at) },
  { header: "BY", value: ({ by }) => by },
  { header: "COMMAND", value: ({ command }) => command },
  { header: "OUTCOME", value: ({ outcome }) => outcome },
  { header: "ARGUMENTS", value: (action) => describeValues(action.arguments) },
  { header: "DID", value: ({ did }) => describeValues(did) },
  { header: "WHY", value: ({ problem }) => problem ?? "" },
];

import { type EventDetails, listEvents } from "@booking-events/store";
import type { Command } from "commander";
import type { Context } from "../../context.ts";
import { readDatabase } from "../../database.ts";
import { parseLimitUpTo } from "../../terminal/arguments.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable, toSeconds } from "../../terminal/print.ts";

const defaultLimit = 20;
const maxLimit = 1_000;

export function addListCommand(events: Command, context: Context): void {
  events
    .command("list")
    .summary("list the newest events")
    .description("List the events that were received last, newest first. Shows no personal data.")
    .option("--partner <id>", "only events of this partner")
    .option("--limit <number>", `maximum number, up to ${maxLimit}`, parseLimitUpTo(maxLimit), defaultLimit)
    .option(
      "--json",
      "print a JSON array: id, partner, kind, referenceKind, reference, sequence, idempotencyKey, outcome, " +
        "duplicateOf, warnings, receivedAt, processedAt",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- events list --partner acme --limit 50
  $ npm run -s ops -- events list --json | jq -r '.[] | select(.outcome == "duplicate") | .id'`,
    )
    .action((options: ListOptions) => list(context, options));
}

interface ListOptions {
  partner?: string;
  limit: number;
  json?: true;
}

async function list(context: Context, { partner, limit, json }: ListOptions): Promise<void> {
  const events = await readDatabase(context, (client) => listEvents(client, { partner, limit }));
  if (json) printJson(context.stdout, events);
  else if (events.length === 0)
    printLine(context.stdout, `There are no events${partner === undefined ? "" : ` of partner ${partner}`} yet.`);
  else printTable(context.stdout, columns, events);
}

const columns: Column<EventDetails>[] = [
  { header: "RECEIVED", value: (event) => toSeconds(event.receivedAt) },
  { header: "KIND", value: (event) => event.kind },
  { header: "OUTCOME", value: (event) => event.outcome },
  { header: "EVENT ID", value: (event) => event.id, ifNarrow: "below" },
  { header: "PARTNER", value: (event) => event.partner, ifNarrow: "shorten" },
  { header: "REFERENCE", value: (event) => event.reference, ifNarrow: "shorten" },
];

import type { Outcome } from "@booking-events/bookings";
import { eventKinds } from "@booking-events/schema";
import { type EventDetails, type EventFilter, listEvents } from "@booking-events/store";
import { type Command, Option } from "commander";
import type { Context } from "../../context.ts";
import { readDatabase } from "../../database.ts";
import { parseEventId, parseLimitUpTo } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { parsePast } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable, toSeconds } from "../../terminal/print.ts";

const defaultLimit = 20;
const maxLimit = 1_000;

export function addListCommand(events: Command, context: Context): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  events
    .command("list")
    .summary("list the newest events")
    .description("List the events that were received last, newest first. Shows no personal data.")
    .option("--partner <id>", "only events of this partner")
    .option("--reference <reference>", "only events of the partner's trip or consumer with this reference")
    .addOption(new Option("--kind <kind>", "only events of this kind").choices(eventKinds))
    .addOption(new Option("--outcome <outcome>", "only events with this outcome").choices(outcomes))
    .option("--since <time>", "only events received since, such as 2026-11-20T12:00:00Z or 2h (ago)", parseTime)
    .option("--until <time>", "only events received before", parseTime)
    .option("--before <event-id>", "only events before this one: the last one shown gives the next page", parseEventId)
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
  $ npm run ops -- events list --since 1h --outcome duplicate
  $ npm run -s ops -- events list --json | jq -r '.[] | select(.outcome == "duplicate") | .id'`,
    )
    .action((options: ListOptions) => list(context, options));
}

const outcomes = [
  ...["created", "updated", "deleted", "recreated", "unchanged", "duplicate", "superseded", "expired"],
] as const satisfies Outcome[];

interface ListOptions extends EventFilter {
  json?: true;
}

async function list(context: Context, { json, ...filter }: ListOptions): Promise<void> {
  if (filter.reference !== undefined && filter.partner === undefined) {
    throw new CommandFailure("A reference belongs to a partner. Add --partner.", { exitCode: 2 });
  }
  const events = await readDatabase(context, (client) => listEvents(client, filter));
  if (json) printJson(context.stdout, events);
  else if (events.length === 0) printLine(context.stdout, "There are no such events.");
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

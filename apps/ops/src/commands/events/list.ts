import { findEvents, followWindowMs, outcomes } from "@booking-events/operations";
import { eventKinds } from "@booking-events/schema";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { limitOption, parseEventId, parseReference, partnerOption } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { parsePast } from "../../terminal/duration.ts";
import { printRows } from "../../terminal/print.ts";
import { columns } from "./columns.ts";
import { showAsApplied } from "./follow.ts";

export function addListCommand(events: Command, context: Context): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  events
    .command("list")
    .description("List the events that were received last, newest first. Shows no personal data.")
    .addOption(partnerOption("only events"))
    .option("--secret <id>", "only events that came by this secret of the partner, such as s1")
    .option(
      "--reference <reference>",
      "only events of the partner's trip or consumer with this reference",
      parseReference,
    )
    .addOption(new Option("--kind <kind>", "only events of this kind").choices(eventKinds))
    .addOption(new Option("--outcome <outcome>", "only events with this outcome").choices(outcomes))
    .option(
      "--since <time>",
      "only events received since, such as 2026-11-20T12:00:00Z, 02:00 (in UTC) or 2h (ago)",
      parseTime,
    )
    .option("--until <time>", "only events received before", parseTime)
    .option("--before <event-id>", "only events before this one: the last one shown gives the next page", parseEventId)
    .option("--follow", "then go on showing events as they are applied, oldest first, until Ctrl-C")
    .addOption(limitOption(20, 1_000))
    .option(
      "--json",
      "print a JSON array: id, partner, kind, referenceKind, reference, sequence, idempotencyKey, secretId, " +
        "outcome, duplicateOf, warnings, receivedAt, processedAt; with --follow, one JSON object a line",
    )
    .addHelpText(
      "after",
      `
Events of a partner that sends little, or with a rare outcome, are found at once. Rare events of a --kind or by a
--secret are found faster with --since: without it, the whole log may be searched. Instead of --kind delete, use
--outcome deleted.

--follow looks every second. It shows every event that changes a booking, however long it has waited. An event that
changes nothing (unchanged, duplicate, superseded) is shown if it is applied within ${followWindowMs / 60_000} minutes after it was received, or
if it has waited for PostgreSQL. Events that wait and dead letters are not shown.

Examples:
  $ ops events list --partner acme --limit 50
  $ ops events list --partner acme --follow
  $ ops events list --partner acme --secret s1 --since 7d
  $ ops events list --since 1h --outcome duplicate
  $ ops events list --json | jq -r '.[] | select(.outcome == "duplicate") | .id'`,
    )
    .action(async ({ json, follow, ...filter }) => {
      if ((filter.reference ?? filter.secret) !== undefined && filter.partner === undefined) {
        throw new CommandFailure("A reference, and a secret's id, belong to a partner. Add --partner.", {
          exitCode: 2,
        });
      }
      if (follow && (filter.until !== undefined || filter.before !== undefined)) {
        throw new CommandFailure("--follow shows new events. Leave out --until and --before.", { exitCode: 2 });
      }
      if (follow) return showAsApplied(context, filter, { json: json === true });
      const events = await findEvents(context, filter);
      printRows(context.stdout, columns, events, { json, none: "There are no such events." });
    });
}

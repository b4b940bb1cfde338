import { type DeadLetter, type EventDetails, findDeadLetter, findEvent, listEvents } from "@booking-events/store";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { readDatabase } from "../database.ts";
import { parseEventId, parseLimitUpTo } from "../terminal/arguments.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import type { Column } from "../terminal/format-table.ts";
import {
  printFields,
  printHeading,
  printJson,
  printLine,
  printTable,
  toSeconds,
  withReferenceKind,
} from "../terminal/print.ts";

const defaultLimit = 20;
const maxLimit = 1_000;

export function addEventsCommands(program: Command, context: Context): void {
  const events = program
    .command("events")
    .summary("what arrived, when, and what became of it")
    .description("What arrived, when, and what became of it.");

  events
    .command("list")
    .summary("list the events received last")
    .description("List the events received last, newest first. Shows nothing of guests.")
    .option("--partner <id>", "only this partner's")
    .option("--limit <number>", `how many, up to ${maxLimit}`, parseLimitUpTo(maxLimit), defaultLimit)
    .option(
      "--json",
      "print a JSON array: id, partner, kind, referenceKind, reference, sequence, idempotencyKey, outcome, duplicateOf, warnings, receivedAt, processedAt",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- events list --partner acme --limit 50
  $ npm run -s ops -- events list --json | jq -r '.[] | select(.outcome == "duplicate") | .id'`,
    )
    .action((options: ListOptions) => list(context, options));

  events
    .command("show")
    .summary("show one event")
    .description(
      "Show one event, by the id that the partner got as its receipt. What the partner sent holds guests' personal " +
        "data, and is shown only with --payload.",
    )
    .argument("<eventId>", "a UUID", parseEventId)
    .option("--payload", "show what the partner sent: guests' personal data")
    .option(
      "--json",
      "print a JSON object like those of the list, with payload if asked for; deadLetter if it could not be applied",
    )
    .addHelpText("after", "\nExample:\n  $ npm run ops -- events show 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e --payload")
    .action((id: string, options: ShowOptions) => show(context, id, options));
}

interface ListOptions {
  partner?: string;
  limit: number;
  json?: true;
}

interface ShowOptions {
  payload?: true;
  json?: true;
}

async function list(context: Context, { partner, limit, json }: ListOptions): Promise<void> {
  const events = await readDatabase(context, (client) => listEvents(client, { partner, limit }));
  if (json) printJson(context.stdout, events);
  else if (events.length === 0)
    printLine(context.stdout, `No events${partner === undefined ? "" : ` of partner ${partner}`} yet.`);
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

async function show(context: Context, id: string, options: ShowOptions): Promise<void> {
  const { event, deadLetter } = await readDatabase(context, async (client) => ({
    event: await findEvent(client, id),
    deadLetter: await findDeadLetter(client, id),
  }));
  if (event !== undefined) showApplied(context, event, options);
  else if (deadLetter !== undefined) showFailed(context, deadLetter, options);
  else {
    throw new CommandFailure(
      `No event ${id} has been processed. If it was accepted, it waits in the queue: check that the worker runs.`,
    );
  }
}

function showApplied(
  { stdout }: Context,
  { payload, ...event }: EventDetails & { payload: unknown },
  options: ShowOptions,
): void {
  if (options.json) {
    printJson(stdout, options.payload ? { ...event, payload } : event);
    return;
  }
  printHeading(stdout, `Event ${event.id}: ${event.outcome}`);
  printLine(stdout);
  printFields(stdout, [
    ["Partner", event.partner],
    ["Kind", event.kind],
    ["Reference", withReferenceKind(event.reference, event.referenceKind)],
    ["Received", event.receivedAt.toISOString()],
    ["Processed", event.processedAt.toISOString()],
    ["Sequence", String(event.sequence)],
    ["Idempotency key", event.idempotencyKey],
    ["Duplicate of", event.duplicateOf],
    ["Warnings", event.warnings.join(", ") || null],
  ]);
  if (!options.payload) return;
  printLine(stdout);
  printHeading(stdout, "Payload");
  printJson(stdout, payload);
}

function showFailed(
  { stdout, stderr }: Context,
  letter: DeadLetter & { envelope: Buffer },
  options: ShowOptions,
): void {
  const { eventId, partner, kind, referenceKind, reference, sequence, envelope: _guestsData, ...failure } = letter;
  if (options.payload) {
    printLine(stderr, "The event failed: what the partner sent is in the column envelope of the table dead_letters.");
  }
  if (options.json) {
    const event = { id: eventId, partner, kind, referenceKind, reference, sequence, outcome: null };
    printJson(stdout, { ...event, deadLetter: failure });
    return;
  }
  printHeading(stdout, `Event ${eventId}: could not be applied`);
  printLine(stdout);
  printFields(stdout, [
    ["Partner", partner],
    ["Kind", kind],
    ["Reference", reference && withReferenceKind(reference, referenceKind)],
    ["Sequence", sequence === null ? null : String(sequence)],
    ["Failed", failure.failedAt.toISOString()],
    ["Attempts", String(failure.attempts)],
    ["Error", `${failure.errorCode}: ${failure.error}`],
    ["Replayed", failure.replayedAt?.toISOString() ?? null],
    ["Resolved", failure.resolvedAt?.toISOString() ?? "no"],
    ["Resolution", failure.resolution],
  ]);
}

import {
  type BookingDetails,
  describeTrip,
  findStory,
  pickTrip,
  type QueueView,
  type Story,
  type StoryEvent,
  toSeconds,
} from "@booking-events/operations";
import type { ReferenceKind } from "@booking-events/schema";

import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseEventId, parseLimitUpTo, parseReference } from "../../terminal/arguments.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printFields, printHeading, printJson, printLine, printTable } from "../../terminal/print.ts";
import { describeReference, referenceKindOption } from "./reference-kind.ts";

const defaultEventLimit = 50;
const maxEventLimit = 1_000;

export function addShowCommand(bookings: Command, context: Context): void {
  bookings
    .command("show")
    .summary("show one booking and its events")
    .description(
      "Show a booking's state, its trip, and its newest events in the order that decides the state: those that were " +
        "applied, those that wait in the queue and those that could not be applied, and why each did what it did. The " +
        "rest of the booking may be personal data of guests, and is shown only with --payload.",
    )
    .argument("<partner>", "the partner's id")
    .argument("<reference>", "the partner's reference for the booking", parseReference)
    .option("--payload", "show the whole booking, with personal data of guests")
    .addOption(referenceKindOption())
    .option(
      "--limit <number>",
      `maximum number of events, up to ${maxEventLimit}`,
      parseLimitUpTo(maxEventLimit),
      defaultEventLimit,
    )
    .option("--before <eventId>", "only applied events before this one", parseEventId)
    .option(
      "--json",
      "print a JSON object: partner, referenceKind, reference, state (null: nothing was applied yet), sequence, " +
        "createdAt, updatedAt, deletedAt, contentRemovedAt, fieldCount, trip, events (each with its status and why), " +
        "earlierEvents (how many there are before these), queue (how many events were looked at), payload (with --payload)",
    )
    .addHelpText(
      "after",
      `
Events that wait are found if REDIS_URL is set. Up to a million events in the queue are looked at, which takes some
seconds.

Examples:
  $ ops bookings show acme TRIP-1
  $ ops bookings show acme TRIP-1 --json | jq .state`,
    )
    .action((partner: string, reference: string, options: ShowOptions) => show(context, partner, reference, options));
}

interface ShowOptions {
  referenceKind?: ReferenceKind;
  limit: number;
  before?: string;
  payload?: true;
  json?: true;
}

async function show(context: Context, partner: string, reference: string, options: ShowOptions): Promise<void> {
  const found = await findStory(context, { partner, reference, ...options });
  if (options.json) printStoryJson(context, found, options);
  else printStory(context, found, options);
  const [oldest] = found.events.filter(({ status }) => status === "applied");
  if (oldest !== undefined && found.earlier > 0)
    printLine(context.stderr, `There are ${found.earlier} earlier events. Show them with --before ${oldest.id}.`);
}

function printStoryJson({ stdout }: Context, story: Story, options: ShowOptions): void {
  const { partner, reference, referenceKind, booking, events, earlier, queue } = story;
  const { payload, ...state } = booking ?? {
    partner,
    referenceKind,
    reference,
    state: null,
    sequence: null,
    createdAt: null,
    updatedAt: null,
    deletedAt: null,
    contentRemovedAt: null,
    payload: null,
  };
  const content = toContent(payload);
  printJson(stdout, {
    ...state,
    fieldCount: Object.keys(content).length,
    trip: pickTrip(content),
    events: events.map(toJsonEvent),
    earlierEvents: earlier,
    ...(queue === undefined ? {} : { queue: { total: queue.total, looked: queue.looked, problem: queue.problem } }),
    ...(options.payload ? { payload } : {}),
  });
}

function toJsonEvent({ id, kind, sequence, receivedAt, status, why, applied }: StoryEvent): object {
  if (applied === null) return { id, kind, sequence, outcome: null, receivedAt, status, why };
  const { partner: _partner, referenceKind: _kind, reference: _reference, ...event } = applied;
  return { ...event, status, why };
}

function printStory({ stdout }: Context, story: Story, options: ShowOptions): void {
  const { partner, reference, referenceKind, booking, events, queue } = story;
  const name = describeReference(referenceKind ?? "trip", reference);
  printHeading(stdout, `Booking ${name} of ${partner}: ${booking?.state ?? "nothing was applied yet"}`);
  printLine(stdout);
  const content = toContent(booking?.payload);
  printFields(stdout, [
    ["Created", booking === undefined ? null : toSeconds(booking.createdAt)],
    ["Updated", booking === undefined ? null : toSeconds(booking.updatedAt)],
    ["Deleted", booking?.deletedAt ? toSeconds(booking.deletedAt) : null],
    ...describeTrip(pickTrip(content)),
    ["Content", booking === undefined ? null : describeContent(content, booking, options)],
    ["Queue", queue === undefined ? null : describeSearch(queue)],
  ]);
  printLine(stdout);
  const hasWarnings = events.some(({ applied }) => applied !== null && applied.warnings.length > 0);
  printTable(stdout, hasWarnings ? [...columns, warningsColumn] : columns, events);
  if (!options.payload) return;
  printLine(stdout);
  printHeading(stdout, "Payload");
  printJson(stdout, booking?.payload ?? null);
}

const columns: Column<StoryEvent>[] = [
  { header: "RECEIVED", value: ({ receivedAt }) => (receivedAt === null ? "?" : toSeconds(receivedAt)) },
  { header: "KIND", value: ({ kind }) => kind ?? "?" },
  { header: "OUTCOME", value: ({ status, applied }) => applied?.outcome ?? status },
  { header: "EVENT ID", value: ({ id }) => id },
  { header: "SEQUENCE", value: ({ sequence }) => String(sequence ?? "?") },
  { header: "WHY", value: ({ why }) => why },
];
const warningsColumn: Column<StoryEvent> = {
  header: "WARNINGS",
  value: ({ applied }) => applied?.warnings.join(", ") ?? "",
};

/** The payload is null if only deletes have been received, or if the content was removed. */
function toContent(payload: unknown): Record<string, unknown> {
  return typeof payload === "object" && payload !== null ? { ...payload } : {};
}

function describeContent(
  content: Record<string, unknown>,
  { contentRemovedAt }: BookingDetails,
  options: ShowOptions,
): string {
  const count = Object.keys(content).length;
  if (contentRemovedAt !== null) return `removed ${toSeconds(contentRemovedAt)}, some time after the deletion`;
  if (count === 0) return "none, since no create or update has been received";
  const fields = count === 1 ? "1 field" : `${count} fields`;
  return options.payload ? fields : `${fields}, shown with --payload`;
}

function describeSearch({ events, total, looked, problem }: QueueView): string {
  if (problem !== null) return `not looked at: ${problem}`;
  const all = looked < total ? `${looked} of ${total}` : String(total);
  return `${events.length} found among ${all} events`;
}

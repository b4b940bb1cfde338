import type { ReferenceKind } from "@booking-events/schema";
import { type BookingDetails, type EventDetails, findBookings, listBookingEvents } from "@booking-events/store";
import type { Command } from "commander";
import type { Context } from "../../context.ts";
import { readDatabase } from "../../database.ts";
import { parseEventId, parseLimitUpTo } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printFields, printHeading, printJson, printLine, printTable, toSeconds } from "../../terminal/print.ts";
import { describeTrip, pickTrip } from "./describe-trip.ts";
import { describeReference, keysOf, referenceKindOption } from "./reference-kind.ts";

const defaultEventLimit = 50;
const maxEventLimit = 1_000;

export function addShowCommand(bookings: Command, context: Context): void {
  bookings
    .command("show")
    .summary("show one booking and its events")
    .description(
      "Show a booking's state, its trip, and its newest events in the order that decides the state. The rest of the " +
        "booking may be personal data of guests, and is shown only with --payload.",
    )
    .argument("<partner>", "the partner's id")
    .argument("<reference>", "the partner's reference for the booking")
    .option("--payload", "show the whole booking, with personal data of guests")
    .addOption(referenceKindOption())
    .option(
      "--limit <number>",
      `maximum number of events, up to ${maxEventLimit}`,
      parseLimitUpTo(maxEventLimit),
      defaultEventLimit,
    )
    .option("--before <eventId>", "only events before this one", parseEventId)
    .option(
      "--json",
      "print a JSON object: partner, referenceKind, reference, state, sequence, createdAt, updatedAt, deletedAt, " +
        "contentRemovedAt, fieldCount, trip, events, earlierEvents (how many there are before these), payload (with --payload)",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- bookings show acme TRIP-1
  $ npm run -s ops -- bookings show acme TRIP-1 --json | jq .state`,
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
  const { booking, history } = await findBooking(context, partner, reference, options);
  if (options.json) printBookingJson(context, booking, history, options);
  else printBooking(context, booking, history, options);
  const [oldest] = history.events;
  if (oldest !== undefined && history.earlier > 0)
    printLine(context.stderr, `There are ${history.earlier} earlier events. Show them with --before ${oldest.id}.`);
}

type History = Awaited<ReturnType<typeof listBookingEvents>>;

async function findBooking(
  context: Context,
  partner: string,
  reference: string,
  options: ShowOptions,
): Promise<{ booking: BookingDetails; history: History }> {
  return readDatabase(context, async (client) => {
    const [found, another] = await findBookings(client, keysOf(partner, reference, options.referenceKind));
    if (another !== undefined)
      throw new CommandFailure(
        `Partner ${partner} has two bookings ${reference}: one of a trip and one of a consumer. ` +
          "Choose one with --reference-kind trip or --reference-kind consumer.",
      );
    if (found === undefined)
      throw new CommandFailure(
        `Partner ${partner} has no booking ${reference}. See what the partner has sent: ` +
          `npm run ops -- events list --partner ${partner}`,
      );
    const { bookingKey, ...booking } = found;
    return { booking, history: await listBookingEvents(client, bookingKey, options) };
  });
}

function printBookingJson(
  { stdout }: Context,
  { payload, ...booking }: BookingDetails,
  { events, earlier }: History,
  options: ShowOptions,
): void {
  const content = toContent(payload);
  printJson(stdout, {
    ...booking,
    fieldCount: Object.keys(content).length,
    trip: pickTrip(content),
    events: events.map(({ partner: _partner, referenceKind: _kind, reference: _reference, ...event }) => event),
    earlierEvents: earlier,
    ...(options.payload ? { payload } : {}),
  });
}

function printBooking({ stdout }: Context, booking: BookingDetails, { events }: History, options: ShowOptions): void {
  const content = toContent(booking.payload);
  const { referenceKind, reference, partner, state } = booking;
  printHeading(stdout, `Booking ${describeReference(referenceKind, reference)} of ${partner}: ${state}`);
  printLine(stdout);
  printFields(stdout, [
    ["Created", toSeconds(booking.createdAt)],
    ["Updated", toSeconds(booking.updatedAt)],
    ["Deleted", booking.deletedAt && toSeconds(booking.deletedAt)],
    ...describeTrip(pickTrip(content)),
    ["Content", describeContent(content, booking, options)],
  ]);
  printLine(stdout);
  const hasWarnings = events.some(({ warnings }) => warnings.length > 0);
  printTable(stdout, hasWarnings ? [...columns, warningsColumn] : columns, events);
  if (!options.payload) return;
  printLine(stdout);
  printHeading(stdout, "Payload");
  printJson(stdout, booking.payload);
}

const columns: Column<EventDetails>[] = [
  { header: "RECEIVED", value: (event) => toSeconds(event.receivedAt) },
  { header: "KIND", value: (event) => event.kind },
  { header: "OUTCOME", value: (event) => event.outcome },
  { header: "EVENT ID", value: (event) => event.id, ifNarrow: "below" },
  { header: "SEQUENCE", value: (event) => String(event.sequence), ifNarrow: "drop" },
];
const warningsColumn: Column<EventDetails> = {
  header: "WARNINGS",
  value: ({ warnings }) => warnings.join(", "),
  ifNarrow: "shorten",
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

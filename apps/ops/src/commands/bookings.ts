import { parseEnvironment, variables } from "@booking-events/runtime";
import { type BookingFieldName, type ReferenceKind, referenceKinds } from "@booking-events/schema";
import {
  type BookingDetails,
  bookingKey,
  type EventDetails,
  findBookings,
  listBookingEvents,
  readBookings,
} from "@booking-events/store";
import { type Command, Option } from "commander";
import type { Context } from "../context.ts";
import { readDatabase } from "../database.ts";
import { parseEventId, parseLimitUpTo } from "../terminal/arguments.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import type { Column } from "../terminal/format-table.ts";
import { printFields, printHeading, printJson, printLine, printTable, toSeconds } from "../terminal/print.ts";
import { type Verification, verifyBooking } from "./verify-booking.ts";

/**
 * What a booking says of the trip and not of a person. Where a guest stays (accommodation, venue) is left out with the
 * names, numbers and addresses: a field is shown only if it stands here.
 */
const tripFields = [
  "consumerTripExternalProductName",
  "consumerTripDestinationName",
  "consumerTripDestinationCountryName",
  "consumerTripDestinationAirportCode",
  "consumerTripDepartureCityName",
  "consumerTripDepartureCountryName",
  "consumerTripDepartureAirportCode",
  "consumerTripDepartureAirportName",
  "consumerTripDepartureFlightNumber",
  "consumerTripArrivalAirportName",
  "consumerTripArrivalFlightNumber",
  "consumerTripArrivalDate",
  "consumerTripReturnDate",
  "consumerTripIsInternational",
  "consumerTripIsRegional",
  "consumerTripIsLocal",
] as const satisfies BookingFieldName[];

const defaultEventLimit = 50;
const maxEventLimit = 1_000;

const millisecondsPerHour = 60 * 60 * 1_000;

type Trip = Partial<Record<(typeof tripFields)[number], string>>;

export function addBookingsCommands(program: Command, context: Context): void {
  const bookings = program
    .command("bookings")
    .summary("a booking's state now, and how it came to it")
    .description("A booking's state now, and how it came to it.");

  bookings
    .command("show")
    .summary("show one booking and its events")
    .description(
      "Show a booking's state, its trip, and its newest events in the order that decides the state. Everything else in " +
        "the booking may be guests' personal data, and is shown only with --payload.",
    )
    .argument("<partner>", "the partner's id")
    .argument("<reference>", "what the partner calls the booking")
    .option("--payload", "show the whole booking: guests' personal data")
    .addOption(referenceKindOption())
    .option(
      "--limit <number>",
      `how many of its events, up to ${maxEventLimit}`,
      parseLimitUpTo(maxEventLimit),
      defaultEventLimit,
    )
    .option("--before <eventId>", "only events that come before this one", parseEventId)
    .option(
      "--json",
      "print a JSON object: partner, referenceKind, reference, state, sequence, createdAt, updatedAt, deletedAt, fieldCount, trip, " +
        "events, earlierEvents (how many come before these); payload if asked for",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- bookings show acme TRIP-1
  $ npm run -s ops -- bookings show acme TRIP-1 --json | jq .state`,
    )
    .action((partner: string, reference: string, options: ShowOptions) => show(context, partner, reference, options));

  bookings
    .command("verify")
    .summary("compare bookings with their events")
    .description(
      "Fold the events in the log again, and compare what comes out with the bookings and with what is recorded of each " +
        "event. Changes nothing. Set DUPLICATE_WINDOW_HOURS as the worker has it.",
    )
    .argument("[partner]", "only this partner's bookings")
    .argument("[reference]", "only this booking")
    .addOption(referenceKindOption())
    .option(
      "--json",
      "print a JSON object: bookings, events, different (partner, referenceKind, reference, events, differences)",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- bookings verify
  $ npm run ops -- bookings verify acme TRIP-1`,
    )
    .action((partner: string | undefined, reference: string | undefined, options: VerifyOptions) =>
      verify(context, partner, reference, options),
    );
}

function referenceKindOption(): Option {
  return new Option(
    "--reference-kind <kind>",
    "the booking that has this reference of a trip, or of a consumer: they are two, even where the text is the same",
  ).choices(referenceKinds);
}

interface VerifyOptions {
  referenceKind?: ReferenceKind;
  json?: true;
}

const bookingsReadTogether = 200;

/** Booking by booking, each on one state of the database that nothing changes meanwhile. */
async function verify(
  context: Context,
  partner: string | undefined,
  reference: string | undefined,
  { json, referenceKind }: VerifyOptions,
): Promise<void> {
  const { DUPLICATE_WINDOW_HOURS } = parseEnvironment(
    { DUPLICATE_WINDOW_HOURS: variables.DUPLICATE_WINDOW_HOURS },
    context.environment,
  );
  const duplicateWindowMs = DUPLICATE_WINDOW_HOURS * millisecondsPerHour;
  const wanted =
    reference === undefined || partner === undefined ? undefined : keysOf(partner, reference, referenceKind);
  const sum = { bookings: 0, events: 0, different: [] as Verification[] };
  let after: Buffer | undefined;
  for (;;) {
    const filter = { partner, bookingKeys: wanted, after, limit: bookingsReadTogether };
    const { rows, verifications } = await readDatabase(context, async (client) => {
      const rows = await readBookings(client, filter);
      const verifications: Verification[] = [];
      for (const row of rows) verifications.push(await verifyBooking(client, row, { duplicateWindowMs }));
      return { rows, verifications };
    });
    sum.bookings += rows.length;
    for (const verification of verifications) {
      sum.events += verification.events;
      if (verification.differences.length > 0) sum.different.push(verification);
    }
    after = rows.at(-1)?.bookingKey;
    if (rows.length < bookingsReadTogether) break;
  }
  if (wanted !== undefined && sum.bookings === 0)
    throw new CommandFailure(`Partner ${partner} has no booking ${reference}.`);
  printVerification(context, sum, json === true);
}

function printVerification(
  { stdout }: Context,
  { bookings, events, different }: { bookings: number; events: number; different: Verification[] },
  asJson: boolean,
): void {
  if (asJson) printJson(stdout, { bookings, events, different });
  else {
    for (const { partner, referenceKind, reference, differences } of different) {
      printHeading(stdout, `Booking ${describeReference(referenceKind, reference)} of ${partner}`);
      for (const difference of differences) printLine(stdout, `  ${difference}`);
    }
    printLine(
      stdout,
      `${bookings} bookings with ${events} events: ${different.length} differ from the fold of their log.`,
    );
  }
  if (different.length > 0) throw new CommandFailure("Not every booking is the fold of its log.");
}

interface ShowOptions {
  referenceKind?: ReferenceKind;
  limit: number;
  before?: string;
  payload?: true;
  json?: true;
}

async function show(context: Context, partner: string, reference: string, options: ShowOptions): Promise<void> {
  const shown = await readDatabase(context, async (client) => {
    const [found, another] = await findBookings(client, keysOf(partner, reference, options.referenceKind));
    if (another !== undefined)
      throw new CommandFailure(
        `Two bookings of partner ${partner} have the reference ${reference}: a trip and a consumer. ` +
          "Say which one with --reference-kind trip or --reference-kind consumer.",
      );
    if (found === undefined) return undefined;
    const { bookingKey, ...booking } = found;
    return { booking, history: await listBookingEvents(client, bookingKey, options) };
  });
  if (shown === undefined) {
    throw new CommandFailure(
      `Partner ${partner} has no booking ${reference}. What the partner sent of late: ` +
        `npm run ops -- events list --partner ${partner}`,
    );
  }
  const { booking, history } = shown;
  if (options.json) printBookingJson(context, booking, history, options);
  else printBooking(context, booking, history, options);
  const [oldest] = history.events;
  if (oldest !== undefined && history.earlier > 0)
    printLine(context.stderr, `${history.earlier} more before these: --before ${oldest.id} shows them.`);
}

type History = Awaited<ReturnType<typeof listBookingEvents>>;

function keysOf(partner: string, reference: string, kind: ReferenceKind | undefined): Buffer[] {
  return (kind === undefined ? referenceKinds : [kind]).map((any) => bookingKey(partner, any, reference));
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
  const trip = pickTrip(content);
  printHeading(
    stdout,
    `Booking ${describeReference(booking.referenceKind, booking.reference)} of ${booking.partner}: ${booking.state}`,
  );
  printLine(stdout);
  printFields(stdout, [
    ["Created", toSeconds(booking.createdAt)],
    ["Updated", toSeconds(booking.updatedAt)],
    ["Deleted", booking.deletedAt && toSeconds(booking.deletedAt)],
    ["Product", trip.consumerTripExternalProductName ?? null],
    ["Destination", describeDestination(trip)],
    ["From", describeDeparture(trip)],
    ["Arrival", describeArrival(trip)],
    ["Return", trip.consumerTripReturnDate ?? null],
    ["Content", describeContent(content, options)],
  ]);
  printLine(stdout);
  const columns: Column<EventDetails>[] = [
    { header: "RECEIVED", value: (event) => toSeconds(event.receivedAt) },
    { header: "KIND", value: (event) => event.kind },
    { header: "OUTCOME", value: (event) => event.outcome },
    { header: "EVENT ID", value: (event) => event.id, ifNarrow: "below" },
    { header: "SEQUENCE", value: (event) => String(event.sequence), ifNarrow: "drop" },
  ];
  // Few events have any.
  if (events.some(({ warnings }) => warnings.length > 0))
    columns.push({ header: "WARNINGS", value: ({ warnings }) => warnings.join(", "), ifNarrow: "shorten" });
  printTable(stdout, columns, events);
  if (!options.payload) return;
  printLine(stdout);
  printHeading(stdout, "Payload");
  printJson(stdout, booking.payload);
}

/** TRIP-1; or, of a booking without a trip reference: of consumer C-1 */
function describeReference(kind: ReferenceKind, reference: string): string {
  return kind === "trip" ? reference : `of consumer ${reference}`;
}

/** Null in the database: only a delete has been received. */
function toContent(payload: unknown): Record<string, unknown> {
  return typeof payload === "object" && payload !== null ? { ...payload } : {};
}

function pickTrip(content: Record<string, unknown>): Trip {
  return Object.fromEntries(
    tripFields.map((name) => [name, content[name]]).filter(([, value]) => typeof value === "string"),
  );
}

function describeContent(content: Record<string, unknown>, options: ShowOptions): string {
  const count = Object.keys(content).length;
  if (count === 0) return "none: no create or update has been received";
  const fields = count === 1 ? "1 field" : `${count} fields`;
  return options.payload ? fields : `${fields}; --payload shows them all`;
}

/** Lisbon, Portugal (LIS) */
function describeDestination(trip: Trip): string | null {
  return joinPlace(
    [trip.consumerTripDestinationName, trip.consumerTripDestinationCountryName],
    trip.consumerTripDestinationAirportCode,
  );
}

/** London, United Kingdom (LHR), flight BA500 */
function describeDeparture(trip: Trip): string | null {
  const place = joinPlace(
    [
      trip.consumerTripDepartureCityName ?? trip.consumerTripDepartureAirportName,
      trip.consumerTripDepartureCountryName,
    ],
    trip.consumerTripDepartureAirportCode,
  );
  return joinPresent([place, flight(trip.consumerTripDepartureFlightNumber)]);
}

/** 2027-06-14, Lisbon Airport, flight BA500 */
function describeArrival(trip: Trip): string | null {
  return joinPresent([
    trip.consumerTripArrivalDate,
    trip.consumerTripArrivalAirportName,
    flight(trip.consumerTripArrivalFlightNumber),
  ]);
}

function flight(number: string | undefined): string | null {
  return number === undefined ? null : `flight ${number}`;
}

function joinPlace(names: (string | undefined)[], code: string | undefined): string | null {
  const name = joinPresent(names);
  if (code === undefined) return name;
  return name === null ? code : `${name} (${code})`;
}

function joinPresent(parts: (string | null | undefined)[]): string | null {
  const present = parts.filter((part) => typeof part === "string");
  return present.length === 0 ? null : present.join(", ");
}

import {
  type BookingDetails,
  describeCount,
  describeTrip,
  findStory,
  pickTrip,
  type QueueView,
  recordLook,
  type Story,
  type StoryEvent,
  toSeconds,
} from "@booking-events/operations";
import { parseJson, type ReferenceKind } from "@booking-events/schema";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { limitOption, parseEventId, parseReference } from "../../terminal/arguments.ts";
import { parsePast } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/format-table.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printFields, printHeading, printJson, printLine, printTable } from "../../terminal/print.ts";
import { printable, toJsonLine } from "../../terminal/printable.ts";
import { describeReference, referenceKindOption } from "../../terminal/reference.ts";

export function addShowCommand(bookings: Command, context: Context): void {
  bookings
    .command("show")
    .description(
      "Show one booking and its events: its state, its trip, and its newest events, in the order that counts: those that were " +
        "applied, those that wait in the queue and those that could not be applied, why each did what it did, and which " +
        "fields it changed. Values may be personal data of guests, and are shown only with --payload.",
    )
    .argument("<partner>", "the partner's id")
    .argument("<reference>", "the partner's reference for the booking", parseReference)
    .option(
      "--at <time>",
      "the booking as it was at this time of receipt, such as 2026-11-20T14:00:00Z, or 2h",
      (text) => parsePast(text, context.now()),
    )
    .option("--diff", "list the fields that each event changed; with --payload, their values before and after")
    .option("--payload", "show the whole booking, with personal data of guests, which is recorded")
    .addOption(byOption())
    .addOption(referenceKindOption())
    .addOption(limitOption(50, 1_000))
    .option("--before <eventId>", "only applied events before this one", parseEventId)
    .option(
      "--json",
      "print a JSON object: partner, referenceKind, reference, state (null: nothing was applied yet), sequence, " +
        "createdAt, updatedAt, deletedAt, contentRemovedAt, erased (at, by), fieldCount, trip, events (each with its status, " +
        "why, secretId and changedFields; with --diff and --payload also diff), earlierEvents (how many there are before " +
        "these), queue (how many events were looked at), payload (with --payload). With --at, all of it is of that time",
    )
    .addHelpText(
      "after",
      `
Events that wait are found if REDIS_URL is set. Up to a million events in the queue are looked at, which takes some
seconds. An event that was posted alone has the id of its request; of a batch, each line has an id of its own.

Examples:
  $ ops bookings show acme TRIP-1
  $ ops bookings show acme TRIP-1 --at 2026-11-20T14:00:00Z
  $ ops bookings show acme TRIP-1 --diff
  $ ops bookings show acme TRIP-1 --json | jq .state`,
    )
    .action((partner: string, reference: string, options: ShowOptions) => show(context, partner, reference, options));
}

interface ShowOptions {
  referenceKind?: ReferenceKind;
  limit: number;
  before?: string;
  at?: Date;
  diff?: true;
  payload?: true;
  by?: string;
  json?: true;
}

async function show(context: Context, partner: string, reference: string, options: ShowOptions): Promise<void> {
  const acting = options.payload ? actAs(context, options.by) : undefined;
  const found = await findStory(context, {
    partner,
    reference,
    ...options,
    withValues: options.diff === true && options.payload === true,
  });
  const print = () => (options.json ? printStoryJson : printStory)(context, found, options);
  if (acting === undefined) print();
  else await recordLook(acting, "bookings show", { partner, bookingId: found.stored?.bookingId }, print);
  const [oldest] = found.events.filter(({ status }) => status === "applied");
  if (oldest !== undefined && found.earlier > 0)
    printLine(context.stderr, `There are ${found.earlier} earlier events. Show them with --before ${oldest.id}.`);
}

function printStoryJson({ stdout }: Context, story: Story, options: ShowOptions): void {
  const { partner, reference, referenceKind, booking, erased, events, earlier, queue } = story;
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
    reference,
    ...(options.at === undefined ? {} : { at: options.at }),
    erased,
    fieldCount: Object.keys(content).length,
    trip: pickTrip(content),
    events: events.map(toJsonEvent),
    earlierEvents: earlier,
    ...(queue === undefined ? {} : { queue: { total: queue.total, looked: queue.looked, problem: queue.problem } }),
    ...(options.payload ? { payload } : {}),
  });
}

function toJsonEvent({ id, kind, sequence, receivedAt, status, why, applied, changed }: StoryEvent): object {
  if (applied === null) return { id, kind, sequence, outcome: null, receivedAt, status, why };
  const { partner: _partner, referenceKind: _kind, reference: _reference, ...event } = applied;
  const values = changed?.values ?? null;
  const diff = values === null ? {} : { diff: parseJson(values) };
  return { ...event, status, why, changedFields: changed?.names ?? null, ...diff };
}

function printStory({ stdout }: Context, story: Story, options: ShowOptions): void {
  const { partner, booking, erased, events, queue } = story;
  printHeading(stdout, `Booking ${describeReference(story)} of ${partner}${describeState(story, options)}`);
  printLine(stdout);
  const content = toContent(booking?.payload);
  printFields(stdout, [
    ["Created", booking?.createdAt],
    ["Updated", booking?.updatedAt],
    ["Erased", erased === null ? null : `${toSeconds(erased.at)} by ${erased.by ?? "an operator who is not recorded"}`],
    ["Deleted", booking?.deletedAt],
    ...describeTrip(pickTrip(content)),
    ["Content", booking === undefined || erased !== null ? null : describeContent(content, booking, options)],
    ["Queue", queue && describeSearch(queue)],
  ]);
  printLine(stdout);
  if (events.length === 0) return;
  const hasText = ({ value }: Column<StoryEvent>) => events.some((event) => value(event) !== "");
  printTable(
    stdout,
    columns.filter((column) => !optional.has(column.header) || hasText(column)),
    events,
  );
  if (options.diff) printChanges(stdout, events);
  if (!options.payload) return;
  printLine(stdout);
  printHeading(stdout, "Payload");
  printJson(stdout, booking?.payload ?? null);
}

function describeState({ booking, erased }: Story, { at }: ShowOptions): string {
  if (erased !== null) return ": erased";
  const when = at === undefined ? "" : ` at ${at.toISOString()}`;
  if (booking !== undefined) return `${when}: ${booking.state}`;
  return at === undefined ? ": nothing was applied yet" : `${when}: nothing had been received that the log still has`;
}

function printChanges(stdout: Context["stdout"], events: StoryEvent[]): void {
  for (const { id, changed, applied } of events) {
    if (applied === null) continue;
    printLine(stdout);
    printHeading(stdout, `Changed by ${id}`);
    if (changed?.names === null || changed === null) printLine(stdout, "  not known: a content has been removed");
    else if (changed.names.length === 0) printLine(stdout, "  nothing");
    else if (changed.values === null) printLine(stdout, `  ${printable(changed.names.join(", "))}`);
    else printFields(stdout, toValueChanges(changed.values));
  }
}

/** @param text a JSON object: of each field, its values before and after */
function toValueChanges(text: string): [string, string][] {
  const changes = parseJson(text) as Record<string, { before: unknown; after: unknown }>;
  return Object.entries(changes).map(([name, { before, after }]) => [
    printable(name),
    `${toJsonLine(before)} → ${toJsonLine(after)}`,
  ]);
}

const columns: Column<StoryEvent>[] = [
  { header: "RECEIVED", value: ({ receivedAt }) => (receivedAt === null ? "?" : toSeconds(receivedAt)) },
  { header: "KIND", value: ({ kind }) => kind ?? "?" },
  { header: "OUTCOME", value: ({ status, applied }) => applied?.outcome ?? status },
  { header: "EVENT ID", value: ({ id }) => id },
  { header: "SEQUENCE", value: ({ sequence }) => String(sequence ?? "?") },
  { header: "SECRET", value: ({ applied }) => applied?.secretId ?? "" },
  { header: "WHY", value: ({ why }) => why },
  { header: "WARNINGS", value: ({ applied }) => applied?.warnings.join(", ") ?? "" },
  // The longest is the last, so that the others stay in view.
  { header: "CHANGED", value: ({ applied, changed }) => describeChanged(applied?.outcome, changed?.names) },
];
/** Columns that are left out if they are empty. */
const optional = new Set(["SECRET", "CHANGED", "WARNINGS"]);

/** The first event of a booking has changed each of its fields. */
function describeChanged(outcome: string | undefined, names: string[] | null | undefined): string {
  if (names === null || names === undefined) return "";
  return outcome === "created" ? `${names.length} fields` : names.join(", ");
}

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
  const fields = describeCount(count, "field");
  return options.payload ? fields : `${fields}, shown with --payload`;
}

function describeSearch({ events, total, looked, problem }: QueueView): string {
  if (problem !== null) return `not looked at: ${problem}`;
  const all = looked < total ? `${looked} of ${total}` : String(total);
  return `${events.length} found among ${all} events`;
}

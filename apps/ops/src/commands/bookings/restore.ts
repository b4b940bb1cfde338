import {
  describeCount,
  type PlannedBooking,
  planRestore,
  type Restored,
  type RestoreResults,
  RestoreSummary,
  restoreBookings,
  toSeconds,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseReference } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { parsePast } from "../../terminal/duration.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printFields, printJson, printLine, printTable } from "../../terminal/print.ts";
import { printable } from "../../terminal/printable.ts";
import { describeReference, referenceKindOption } from "./reference-kind.ts";

/** More of them are counted, and not shown. */
const maxShown = 50;
const maxInJson = 20_000;

export function addRestoreCommand(bookings: Command, context: Context): void {
  bookings
    .command("restore")
    .summary("put bookings back to what they were at a time")
    .description(
      "Put bookings back to what they were at a time of receipt, by new events, which workers apply like any other. " +
        "Wrong updates are undone, deleted bookings come back, and subscribers are told. A restore can itself be undone: " +
        "restore to a time before it.",
    )
    .argument("<partner>", "the partner's id")
    .argument(
      "[reference...]",
      "only these bookings. Default: all that events have changed since",
      (text, previous: string[] = []) => [...previous, parseReference(text)],
    )
    .requiredOption("--at <time>", "such as 2026-11-20T14:00:00Z, or how long ago, such as 2h", (text) =>
      parsePast(text, context.now()),
    )
    .option("--secret <id>", "only bookings that events by this secret have changed since")
    .option("--delete-new", "also delete bookings that have come since")
    .option(
      "--unless-changed-since <time>",
      "leave bookings alone that changed after this time, the preview's",
      (text) => parsePast(text, context.now()),
    )
    .addOption(referenceKindOption())
    .option("--dry-run", "only show what would change")
    .option("--yes", "do it")
    .addOption(byOption())
    .option(
      "--json",
      "print a JSON object: partner, at, isDryRun, readAt, logBegins, counts (update, delete, and why others stay), " +
        "fields (how often each would change), bookings (of each: action, reason, changedFields), omitted, results",
    )
    .addHelpText(
      "after",
      `
Left as they are:
  same               as it was, in state and content
  new                it has come since; --delete-new deletes it
  in-queue           it has events that were not applied yet: wait, and run the command again
  changed-meanwhile  it was changed after --unless-changed-since, or while this ran. The newer event wins
  not-in-log         the log no longer has what it was
  erased             erased bookings never come back
  unknown            the partner has no such booking

What a partner sends while this runs wins over the restore. The restore undoes everything since then, also what others
than --secret have sent, and right events after the wrong ones: name the references to leave other bookings alone. Open dead letters are older than the restore, so to replay them afterwards
changes nothing.

If it is interrupted, run it again: nothing is restored twice. It needs DATABASE_URL and REDIS_URL.

Examples:
  $ ops bookings restore acme --secret s2 --at 2026-11-20T14:00:00Z --dry-run
  $ ops bookings restore acme TRIP-1 TRIP-2 --at 10m --dry-run
  $ ops bookings restore acme TRIP-1 TRIP-2 --at 10m --yes`,
    )
    .action(async (partner, references, options) => {
      if ((options.dryRun === true) === (options.yes === true))
        throw new CommandFailure("Give --dry-run to see what would change, or --yes to do it.", { exitCode: 2 });
      const preview = new RestoreSummary({ maxShown: maxInJson });
      context.atSignal(() => describeInterruption(preview));
      const request = { partner, references: references ?? [], ...options, deleteNew: options.deleteNew === true };
      const progress = toProgress(context, preview);
      const restored = await (options.dryRun
        ? planRestore(context, request, progress)
        : restoreBookings(actAs(context, options.by), request, progress));
      if (options.json) printRestoredJson(context, { partner, at: options.at, preview, restored });
      else printRestored(context, { at: options.at, preview, restored });
      requireDone(restored.results);
    });
}

function toProgress({ stderr }: Context, preview: RestoreSummary) {
  let lastReason = "";
  return {
    plan: (booking: PlannedBooking) => preview.add(booking),
    count: (_what: "queued" | "known", by: number) => {
      preview.queued += by;
      if (stderr.isTTY === true) stderr.write(`\r${preview.queued} queued`);
    },
    wait: ({ reason, advice }: { reason: string; advice: string }) => {
      const kind = reason.replaceAll(/\d+/g, "");
      if (kind !== lastReason) printLine(stderr, printable(`Waiting: ${reason}. ${advice}`));
      lastReason = kind;
    },
  };
}

interface Result {
  at: Date;
  preview: RestoreSummary;
  restored: Restored;
}

function printRestoredJson(
  { stdout }: Context,
  { partner, at, preview, restored: { readAt, logBegins, results } }: Result & { partner: string },
): void {
  const { counts, fields, shown, omitted } = preview;
  printJson(stdout, {
    partner,
    at,
    isDryRun: results === null,
    readAt,
    logBegins,
    counts,
    fields: Object.fromEntries(fields),
    bookings: shown,
    omitted,
    results,
  });
}

function printRestored({ stdout, stderr }: Context, { at, preview, restored }: Result): void {
  const { shown, counts } = preview;
  const { results, readAt, logBegins } = restored;
  if (shown.length > 0) printTable(stdout, columns, shown.toSorted(compareReferences).slice(0, maxShown));
  if (shown.length > maxShown)
    printLine(stdout, `… and ${shown.length + preview.omitted - maxShown} more; see --json.`);
  const would = results === null ? "would be " : "";
  printLine(stdout, `To ${at.toISOString()}:`);
  printFields(stdout, [
    ["Put back", describeCount(counts.update, "booking")],
    ["Deleted", counts.delete === 0 ? null : describeCount(counts.delete, "booking")],
    ["Fields", preview.fields.size === 0 ? null : describeFields(preview.fields)],
    ["Left", describeLeft(counts)],
    ["Others", describeOthers(preview, would)],
    ["Dead letters", describeDead(preview)],
    ["Log", logBegins !== null && logBegins > at ? `it begins at ${toSeconds(logBegins)}, after that time` : null],
    ["Events", results === null ? null : describeResults(results)],
  ]);
  if (results === null && counts.update + counts.delete > 0)
    printLine(stderr, `Nothing was done. To do it: --yes --unless-changed-since ${readAt.toISOString()}`);
}

function compareReferences(one: PlannedBooking, other: PlannedBooking): number {
  return one.reference.localeCompare(other.reference, "en", { numeric: true });
}

const columns = [
  {
    header: "REFERENCE",
    value: ({ referenceKind, reference }: PlannedBooking) => describeReference(referenceKind ?? "trip", reference),
  },
  { header: "ACTION", value: ({ action, reason }: PlannedBooking) => action ?? `none: ${reason}` },
  { header: "FIELDS", value: ({ changedFields }: PlannedBooking) => changedFields.join(", ") },
];

function describeFields(fields: Map<string, number>): string {
  const most = [...fields].sort(([, one], [, other]) => other - one).slice(0, 10);
  const names = most.map(([name, count]) => `${name} (${count})`).join(", ");
  return fields.size > most.length ? `${names}, and ${fields.size - most.length} more` : names;
}

function describeLeft({ update: _update, delete: _delete, ...left }: RestoreSummary["counts"]): string | null {
  const parts = Object.entries(left).flatMap(([reason, count]) => (count === 0 ? [] : `${count} ${reason}`));
  return parts.length === 0 ? null : parts.join(", ");
}

function describeOthers({ changedByOthers }: RestoreSummary, would: string): string | null {
  if (changedByOthers === 0) return null;
  return `${describeCount(changedByOthers, "booking")} had events of other secrets since, which ${would || "were "}undone, too`;
}

function describeDead({ withDeadLetters }: RestoreSummary): string | null {
  return withDeadLetters === 0 ? null : `${describeCount(withDeadLetters, "booking")} with open ones, which stay`;
}

function describeResults({ queued, applied, superseded, erased, dead, waiting }: RestoreResults): string {
  const rest = { superseded, erased, dead, waiting };
  const parts = Object.entries(rest).flatMap(([what, count]) => (count === 0 ? [] : `${count} ${what}`));
  return [`${queued} queued`, `${applied} applied`, ...parts].join(", ");
}

function requireDone(results: RestoreResults | null): void {
  if (results === null || results.waiting + results.dead === 0) return;
  throw new CommandFailure(
    results.dead > 0
      ? "Some events of the restore could not be applied. See: ops dead-letters list"
      : "Some events of the restore wait for a worker. They will be applied: see ops status.",
  );
}

function describeInterruption({ queued }: RestoreSummary): string {
  return `Interrupted after ${queued} events were queued, which will be applied. To go on, run the same command again.`;
}

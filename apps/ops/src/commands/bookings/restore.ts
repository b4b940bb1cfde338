import {
  describeRestore,
  type PlannedBooking,
  planRestore,
  type Restored,
  type RestoreResults,
  RestoreSummary,
  restoreBookings,
  restoreReasons,
} from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseReference } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { parsePast } from "../../terminal/duration.ts";
import type { Column } from "../../terminal/format-table.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printFields, printJson, printLine, printTable } from "../../terminal/print.ts";
import { printable } from "../../terminal/printable.ts";
import { referenceColumn, referenceKindOption } from "../../terminal/reference.ts";

/** More of them are counted, and not shown. */
const maxShown = 50;
const maxInJson = 20_000;

const reasons = Object.entries({ ...restoreReasons, new: `${restoreReasons.new}; --delete-new deletes it` }).map(
  ([reason, text]) => `  ${reason.padEnd(17)}  ${text}`,
);

export function addRestoreCommand(bookings: Command, context: Context): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  bookings
    .command("restore")
    .description(
      "Put bookings back to what they were at a time of receipt: by new events, which workers apply like any other. " +
        "Wrong updates are undone, deleted bookings come back, and subscribers are told. A restore can itself be undone: " +
        "restore to a time before it.",
    )
    .argument("<partner>", "the partner's id")
    .argument(
      "[reference...]",
      "only these bookings. Default: all that events have changed since",
      (text, previous: string[] = []) => [...previous, parseReference(text)],
    )
    .requiredOption("--at <time>", "such as 2026-11-20T14:00:00Z, or how long ago, such as 2h", parseTime)
    .option("--secret <id>", "only bookings that events by this secret have changed since")
    .option("--delete-new", "also delete bookings that have come since")
    .option(
      "--unless-changed-since <time>",
      "leave bookings alone that changed after this, the preview's time",
      parseTime,
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
${reasons.join("\n")}

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
      const result = { at: options.at, preview, restored };
      if (options.json) printRestoredJson(context, partner, result);
      else printRestored(context, result);
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

function printRestoredJson({ stdout }: Context, partner: string, { at, preview, restored }: Result): void {
  const { counts, fields, shown: bookings, omitted } = preview;
  const isDryRun = restored.results === null;
  const found = { counts, fields: Object.fromEntries(fields), bookings, omitted };
  printJson(stdout, { partner, at, isDryRun, ...restored, ...found });
}

function printRestored({ stdout, stderr }: Context, { at, preview, restored }: Result): void {
  const { shown, omitted, restorable } = preview;
  const first = shown.toSorted(compareReferences).slice(0, maxShown);
  if (first.length > 0) printTable(stdout, columns, first);
  if (shown.length > maxShown) printLine(stdout, `… and ${shown.length + omitted - maxShown} more; see --json.`);
  printLine(stdout, `To ${at.toISOString()}:`);
  printFields(stdout, describeRestore(preview, at, restored));
  if (restored.results === null && restorable > 0)
    printLine(stderr, `Nothing was done. To do it: --yes --unless-changed-since ${restored.readAt.toISOString()}`);
}

function compareReferences(one: PlannedBooking, other: PlannedBooking): number {
  return one.reference.localeCompare(other.reference, "en", { numeric: true });
}

const columns: Column<PlannedBooking>[] = [
  referenceColumn,
  { header: "ACTION", value: ({ action, reason }) => action ?? `none: ${reason}` },
  { header: "FIELDS", value: ({ changedFields }) => changedFields.join(", ") },
];

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

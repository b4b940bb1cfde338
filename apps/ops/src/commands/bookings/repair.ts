import { planRepairs, type Repair, type RepairSum, repairBookings } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseReference } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printHeading, printJson, printLine, printOmitted } from "../../terminal/print.ts";
import { describeReference, referenceKindOption } from "../../terminal/reference.ts";

export function addRepairCommand(bookings: Command, context: Context): void {
  bookings
    .command("repair")
    .description(
      "Correct bookings that differ from their events: fold the events in the log again, and store what the fold says where it differs: the booking, the outcomes of " +
        "its events, and a change in the feed. Without --yes, only shows what would be done.",
    )
    .argument("[partner]", "only this partner's bookings")
    .argument("[reference]", "only this booking", parseReference)
    .addOption(referenceKindOption())
    .option("--all", "all bookings that differ, of the partner if there is one")
    .option("--yes", "do it")
    .addOption(byOption())
    .option(
      "--json",
      "print a JSON object: bookings (how many were compared), isDryRun, repaired and refused (how many), repairs (the " +
        "first 1,000: partner, referenceKind, reference, bookingId, differences, change, revision, eventId, revised, refused)",
    )
    .addHelpText(
      "after",
      `
Workers may run meanwhile: each booking is repaired in a transaction of its own, which holds its lock. A booking that
is older than its log is folded from where the log begins. Its id is recorded with who
repaired it: see ops audit.

A fault made the difference: find it before you repair, or it comes again.

Examples:
  $ ops bookings repair acme TRIP-1
  $ ops bookings repair --all --yes`,
    )
    .action(async (partner, reference, { json, all, yes, by, referenceKind }) => {
      if ((reference === undefined) === (all === undefined))
        throw new CommandFailure("Give the partner and the reference of a booking, or --all.", { exitCode: 2 });
      const isDryRun = yes !== true;
      const filter = { partner, reference, referenceKind };
      const sum = await (isDryRun ? planRepairs(context, filter) : repairBookings(actAs(context, by), filter));
      if (json) printJson(context.stdout, { ...sum, isDryRun });
      else printRepairs(context, sum, isDryRun);
      if (sum.refused > 0) throw new CommandFailure("Not every booking can be repaired from its log.");
    });
}

function printRepairs(
  { stdout }: Context,
  { bookings, repaired, refused, repairs }: RepairSum,
  isDryRun: boolean,
): void {
  for (const repair of repairs) {
    printHeading(stdout, `Booking ${describeReference(repair)} of ${repair.partner}`);
    for (const difference of repair.differences) printLine(stdout, `  ${difference}`);
    printLine(stdout, `  ${describeRepair(repair, isDryRun)}`);
  }
  printOmitted(stdout, repaired + refused - repairs.length);
  const done = isDryRun ? "would be repaired. To repair them, add --yes" : "were repaired";
  printLine(stdout, `${bookings} bookings: ${repaired} ${done}.`);
}

function describeRepair({ refused, change, revision, revised }: Repair, isDryRun: boolean): string {
  if (refused !== null) return `Can't be repaired: ${refused}`;
  const feed = change === null ? "no change in the feed" : `change ${revision} in the feed: ${change}`;
  return `${isDryRun ? "Would be repaired" : "Repaired"}: ${revised} events revised, ${feed}.`;
}

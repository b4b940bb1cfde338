import { type VerificationSum, verifyBookings } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { parseReference } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printHeading, printJson, printLine, printOmitted } from "../../terminal/print.ts";
import { describeReference, referenceKindOption } from "../../terminal/reference.ts";

export function addVerifyCommand(bookings: Command, context: Context): void {
  bookings
    .command("verify")
    .description(
      "Compare bookings with their events: fold the events in the log again, and compare the result with the bookings and with each event's outcome. " +
        "Changes nothing.",
    )
    .argument("[partner]", "only this partner's bookings")
    .argument("[reference]", "only this booking", parseReference)
    .addOption(referenceKindOption())
    .option(
      "--json",
      "print a JSON object: bookings, events, olderThanLog (how many bookings began before the log, and were compared " +
        "from there), differing (how many), different (the first 1,000: partner, referenceKind, reference, events, " +
        "differences)",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ ops bookings verify
  $ ops bookings verify acme TRIP-1

To correct what differs: ops bookings repair`,
    )
    .action(async (partner, reference, { json, referenceKind }) => {
      const sum = await verifyBookings(context, { partner, reference, referenceKind });
      printSum(context, sum, json === true);
    });
}

function printSum({ stdout }: Context, sum: VerificationSum, asJson: boolean): void {
  const { bookings, events, olderThanLog, differing, different } = sum;
  if (asJson) printJson(stdout, sum);
  else {
    for (const booking of different) {
      printHeading(stdout, `Booking ${describeReference(booking)} of ${booking.partner}`);
      for (const difference of booking.differences) printLine(stdout, `  ${difference}`);
    }
    printOmitted(stdout, differing - different.length);
    printLine(stdout, `${bookings} bookings with ${events} events: ${differing} bookings differ from their logs.`);
    if (olderThanLog > 0)
      printLine(stdout, `${olderThanLog} bookings are older than the log, and were compared from there.`);
  }
  if (differing > 0)
    throw new CommandFailure("Not every booking agrees with its log. To correct them: ops bookings repair --all");
}

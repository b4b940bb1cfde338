import { countDifferences, renormaliseBookings } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { partnerOption } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { actAs, byOption } from "../../terminal/operator.ts";
import { printJson, printLine } from "../../terminal/print.ts";

export function addRenormaliseCommand(bookings: Command, context: Context): void {
  bookings
    .command("renormalise")
    .description(
      "Read the contents of bookings again, after a rule has changed: compute the columns that follow from the payloads, " +
        "such as phone numbers in E.164, and the hashes by which guests are found, and write those that differ. Payloads stay, and the feed gets no change. Each booking is read by its " +
        "partner's country at the time of its event.",
    )
    .addOption(partnerOption("only bookings"))
    .option("--dry-run", "only count the bookings that differ")
    .addOption(byOption())
    .option("--json", "print a JSON object: bookings (how many were read), changed, busy, isDryRun")
    .addHelpText(
      "after",
      `
Run it when all workers have the release with the new rule: an older one writes by the old rule. Workers may run
meanwhile. If it is interrupted, run it again: it starts over, and writes only what still differs.

Examples:
  $ ops bookings renormalise --dry-run
  $ ops bookings renormalise --partner acme`,
    )
    .action(async ({ partner, dryRun, by, json }) => {
      const isDryRun = dryRun === true;
      const sum = { bookings: 0, changed: 0, busy: 0 };
      context.atSignal(
        () => `Interrupted. ${describe(sum, isDryRun)} Run it again: it writes only what still differs.`,
      );
      const count = (page: typeof sum) => {
        sum.bookings += page.bookings;
        sum.changed += page.changed;
        sum.busy += page.busy;
      };
      await (isDryRun
        ? countDifferences(context, { partner }, count)
        : renormaliseBookings(actAs(context, by), { partner }, count));
      if (json) printJson(context.stdout, { ...sum, isDryRun });
      else printLine(context.stdout, describe(sum, isDryRun));
      if (sum.busy > 0)
        throw new CommandFailure(`${sum.busy} bookings were in use each time. Run it again when they are not.`);
    });
}

function describe({ bookings, changed }: { bookings: number; changed: number }, isDryRun: boolean): string {
  return `${bookings} bookings: ${changed} ${isDryRun ? "would be corrected" : "corrected"}.`;
}

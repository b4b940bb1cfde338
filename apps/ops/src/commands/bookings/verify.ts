import { parseEnvironment, variables } from "@booking-events/runtime";
import { readBookings, readLogHorizon } from "@booking-events/store";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { readDatabase } from "../../database.ts";
import { parseReference } from "../../terminal/arguments.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import { printHeading, printJson, printLine } from "../../terminal/print.ts";
import { describeReference, keysOf, referenceKindOption } from "./reference-kind.ts";
import { type Verification, verifyBookings } from "./verify-booking.ts";

const millisecondsPerHour = 60 * 60 * 1_000;
const bookingsReadTogether = 200;

export function addVerifyCommand(bookings: Command, context: Context): void {
  bookings
    .command("verify")
    .summary("compare bookings with their events")
    .description(
      "Fold the events in the log again, and compare the result with the bookings and with each event's outcome. " +
        "Changes nothing. DUPLICATE_WINDOW_HOURS must have the worker's value.",
    )
    .argument("[partner]", "only this partner's bookings")
    .argument("[reference]", "only this booking", parseReference)
    .addOption(referenceKindOption())
    .option(
      "--json",
      "print a JSON object: bookings, events, olderThanLog (how many bookings began before the log, and were compared " +
        "from there), different (partner, referenceKind, reference, events, differences)",
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
      const bookingKeys =
        reference === undefined || partner === undefined ? undefined : keysOf(partner, reference, referenceKind);
      const sum = { bookings: 0, events: 0, olderThanLog: 0, different: [] as Verification[] };
      for await (const verification of verifyAll(context, { partner, bookingKeys })) {
        sum.bookings += 1;
        sum.events += verification.events;
        if (verification.isOlderThanLog) sum.olderThanLog += 1;
        if (verification.differences.length > 0) sum.different.push(verification);
      }
      if (partner !== undefined && sum.bookings === 0)
        throw new CommandFailure(
          reference === undefined
            ? `Partner ${partner} has no bookings. See which partners there are: ops partners list`
            : `Partner ${partner} has no booking ${reference}.`,
        );
      printSum(context, sum, json === true);
    });
}

/** Each booking is compared with its log in one snapshot of the database. */
export async function* verifyAll(
  context: Context,
  filter: { partner: string | undefined; bookingKeys: Buffer[] | undefined },
): AsyncGenerator<Verification> {
  const duplicateWindowMs = readDuplicateWindowMs(context);
  let after: Buffer | undefined;
  do {
    const page = await readDatabase(context, async (client) => {
      const bookings = await readBookings(client, { ...filter, after, limit: bookingsReadTogether });
      const options = { duplicateWindowMs, horizon: await readLogHorizon(client) };
      const verified = await verifyBookings(client, bookings, options);
      return { bookings, verifications: verified.map(({ verification }) => verification) };
    });
    yield* page.verifications;
    after = page.bookings.length < bookingsReadTogether ? undefined : page.bookings.at(-1)?.bookingKey;
  } while (after !== undefined);
}

export function readDuplicateWindowMs({ environment }: Context): number {
  const { DUPLICATE_WINDOW_HOURS: hours } = parseEnvironment(
    { DUPLICATE_WINDOW_HOURS: variables.DUPLICATE_WINDOW_HOURS },
    environment,
  );
  return hours * millisecondsPerHour;
}

function printSum(
  { stdout }: Context,
  sum: { bookings: number; events: number; olderThanLog: number; different: Verification[] },
  asJson: boolean,
): void {
  const { bookings, events, olderThanLog, different } = sum;
  if (asJson) printJson(stdout, sum);
  else {
    for (const { partner, referenceKind, reference, differences } of different) {
      printHeading(stdout, `Booking ${describeReference(referenceKind, reference)} of ${partner}`);
      for (const difference of differences) printLine(stdout, `  ${difference}`);
    }
    printLine(
      stdout,
      `${bookings} bookings with ${events} events: ${different.length} bookings differ from their logs.`,
    );
    if (olderThanLog > 0)
      printLine(stdout, `${olderThanLog} bookings are older than the log, and were compared from there.`);
  }
  if (different.length > 0)
    throw new CommandFailure("Not every booking agrees with its log. To correct them: ops bookings repair --all");
}

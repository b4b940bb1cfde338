import { type ArrivingGuest, describeAge, findArrivals } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { limitOption, partnerOption } from "../terminal/arguments.ts";
import { parseDurationMs } from "../terminal/duration.ts";
import type { Column } from "../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";
import { referenceColumn } from "../terminal/reference.ts";

const maxLimit = 1_000;
const defaultWithin = "48h";

export function addArrivalsCommand(program: Command, context: Context): void {
  program
    .command("arrivals")
    .description(
      "List the guests who arrive soon: whether the partner's last word on each booking is applied, how old it is, what " +
        "of it waits or is a dead letter, and which values can't be read. Unresolved ones come first: with a dead " +
        "letter, with an event that has waited for over a minute, or with a phone number or e-mail address that can't " +
        "be read. Shows no values of guests but the day of the arrival.",
    )
    .option("--within <duration>", `how soon, such as 12h or 7d (default: ${defaultWithin})`, parseDurationMs)
    .addOption(partnerOption("only guests"))
    .addOption(limitOption(100, maxLimit))
    .option(
      "--json",
      "print a JSON object: until, counts (arriving, unresolved, dead, waiting, unreadable), guests (partner, " +
        "referenceKind, reference, bookingId, arrivalDay, arrivalAt, destinationCountry, destinationAirport, isApplied, " +
        "appliedUntil, lastWordAt, letters, waiting, unreadable, isUnresolved), isCut, queueProblem",
    )
    .addHelpText(
      "after",
      `
A day alone counts in every time zone. A booking that only a dead letter or a waiting event names is listed, too. What is
older than what is applied is left out: each event says all of a booking. Of the queue, the oldest 500 events of each list
are looked at.

Examples:
  $ ops arrivals
  $ ops arrivals --within 12h --json | jq '.guests[] | select(.isUnresolved)'`,
    )
    .action(async ({ within: withinMs = parseDurationMs(defaultWithin), partner, limit, json }) => {
      const arrivals = await findArrivals(context, { withinMs, partner, limit });
      if (json) return printJson(context.stdout, arrivals);
      const { guests, counts, isCut, queueProblem } = arrivals;
      if (guests.length === 0) printLine(context.stdout, "No guest is known to arrive.");
      else printTable(context.stdout, columnsAt(context.now()), guests);
      const { arriving, unresolved, dead, waiting, unreadable } = counts;
      const reasons = `${dead} dead, ${waiting} waiting, ${unreadable} with a contact that can't be read`;
      printLine(context.stdout, `${arriving} arrive, ${unresolved} with something unresolved: ${reasons}.`);
      if (isCut) printLine(context.stderr, `There are more. Show up to ${maxLimit} with --limit.`);
      if (queueProblem !== null) printLine(context.stderr, printable(`The queue was not looked at: ${queueProblem}`));
    });
}

function columnsAt(now: Date): Column<ArrivingGuest>[] {
  return [
    { header: "ARRIVES", value: ({ arrivalAt, arrivalDay }) => describeArrival(arrivalAt, arrivalDay) },
    { header: "PARTNER", value: ({ partner }) => partner },
    referenceColumn,
    {
      header: "LAST WORD",
      value: ({ lastWordAt }) => (lastWordAt === null ? "?" : describeAge(now.getTime() - lastWordAt.getTime())),
    },
    { header: "STATE", value: describeState },
    { header: "UNREADABLE", value: ({ unreadable }) => unreadable.join(", ") },
  ];
}

function describeArrival(at: Date | null, day: string | null): string {
  return at === null ? (day ?? "?") : `${at.toISOString().slice(0, 16)}Z`;
}

function describeState({ isApplied, appliedUntil, letters, waiting }: ArrivingGuest): string {
  if (isApplied) return "applied";
  const parts = [
    ...letters.map(({ kind, errorCode }) => `${kind ?? "event"} dead (${errorCode})`),
    ...waiting.map(({ kind, state }) => `${kind ?? "event"} ${state}`),
  ];
  return [...(appliedUntil === null ? ["nothing applied"] : []), ...parts].join(", ");
}

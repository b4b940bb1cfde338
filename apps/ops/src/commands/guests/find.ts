import { type Findings, type FoundGuest, findGuest, isNothing, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context, Output } from "../../context.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../../terminal/print.ts";
import { addSearchOptions, readSearch } from "./search.ts";

export function addFindCommand(guests: Command, context: Context): void {
  addSearchOptions(guests.command("find"))
    .description(
      "List the bookings of a guest: those that hold the value, or have held it, and the dead letters that do. Events that still wait " +
        "in the queue are not listed. Every address and number that was sent as consumerEmail or consumerPhone is " +
        "found, however it was written. Numbers with the same end, such as one without a country code, are listed apart: " +
        "they may be the guest's. By a consumer's reference, only trips that have it now are found.",
    )
    .option(
      "--json",
      "print a JSON object: bookings (partner, referenceKind, reference, state, updatedAt), deadLetters, and the same of " +
        "near misses: similarBookings, similarDeadLetters",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ ops guests find --email ada@example.com
  $ ops guests find --phone +442071838750
  $ ops guests find --email -        # keeps the address out of the shell's history`,
    )
    .action(async ({ json, ...options }) => {
      const search = await readSearch(context, options);
      const found = await findGuest(context, search);
      if (json) printJson(context.stdout, toJsonObject(found));
      else printFound(context.stdout, found);
    });
}

function toJsonObject({ exact, near }: FoundGuest) {
  return {
    bookings: exact.bookings.map(describeBooking),
    deadLetters: exact.letters.map(({ eventId }) => eventId),
    similarBookings: near.bookings.map(describeBooking),
    similarDeadLetters: near.letters.map(({ eventId }) => eventId),
  };
}

function describeBooking({ partner, referenceKind, reference, state, updatedAt }: Findings["bookings"][number]) {
  return { partner, referenceKind, reference, state, updatedAt };
}

/** @param isOfQueue the queue was looked at, too */
export function printFound(output: Output, { exact, near }: FoundGuest, isOfQueue = false): void {
  if (exact.bookings.length === 0) printLine(output, "No bookings.");
  printFindings(output, exact, isOfQueue);
  if (isNothing(near)) return;
  printLine(output);
  printLine(output, "Near misses, which may be the guest's. Compare them: ops bookings show --payload");
  printFindings(output, near, near.queued.length > 0);
}

function printFindings(output: Output, { bookings, letters, queued }: Findings, isOfQueue: boolean): void {
  if (bookings.length > 0) printTable(output, columns, bookings);
  for (const { eventId } of letters) printLine(output, `Dead letter ${eventId}`);
  if (isOfQueue) printLine(output, `${queued.length} events in the queue.`);
}

const columns: Column<Findings["bookings"][number]>[] = [
  { header: "PARTNER", value: ({ partner }) => partner },
  { header: "KIND", value: ({ referenceKind }) => referenceKind },
  { header: "REFERENCE", value: ({ reference }) => reference },
  { header: "STATE", value: ({ state }) => state },
  { header: "UPDATED", value: ({ updatedAt }) => toSeconds(updatedAt) },
];

import type { Command } from "@commander-js/extra-typings";
import type { Context, Output } from "../../context.ts";
import { withDatabase } from "../../database.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printJson, printLine, printTable, toSeconds } from "../../terminal/print.ts";
import { addSearchOptions, findStored, openKey, readSearch, type StoredFindings } from "./search.ts";

export function addFindCommand(guests: Command, context: Context): void {
  addSearchOptions(guests.command("find"))
    .summary("list the bookings of a guest")
    .description(
      "List the bookings that hold the value, or have held it, and the dead letters that do. Events that still wait " +
        "in the queue are not listed. Every address and number that was sent as consumerEmail or consumerPhone is " +
        "found, whatever its case and punctuation; a number in national form only as such. By a consumer's reference, " +
        "only trips that have it now are found.",
    )
    .option(
      "--json",
      "print a JSON object: bookings (partner, referenceKind, reference, state, updatedAt), deadLetters",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- guests find --email ada@example.com
  $ npm run ops -- guests find --email -        # keeps the address out of the shell's history`,
    )
    .action(async ({ json, ...options }) => {
      const search = await readSearch(context, options);
      const found = await withDatabase(context, async (pool) => findStored(pool, await openKey(context, pool), search));
      if (json) printJson(context.stdout, toJsonObject(found));
      else printFindings(context.stdout, found);
    });
}

function toJsonObject({ bookings, letters }: StoredFindings) {
  return {
    bookings: bookings.map(({ partner, referenceKind, reference, state, updatedAt }) => ({
      partner,
      referenceKind,
      reference,
      state,
      updatedAt,
    })),
    deadLetters: letters.map(({ eventId }) => eventId),
  };
}

export function printFindings(output: Output, { bookings, letters }: StoredFindings): void {
  if (bookings.length === 0) printLine(output, "No bookings.");
  else printTable(output, columns, bookings);
  for (const { eventId } of letters) printLine(output, `Dead letter ${eventId}`);
}

const columns: Column<StoredFindings["bookings"][number]>[] = [
  { header: "PARTNER", value: ({ partner }) => partner },
  { header: "KIND", value: ({ referenceKind }) => referenceKind },
  { header: "REFERENCE", value: ({ reference }) => reference },
  { header: "STATE", value: ({ state }) => state },
  { header: "UPDATED", value: ({ updatedAt }) => toSeconds(updatedAt) },
];

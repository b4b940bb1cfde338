import { countUnreadableValues, type Queryable, readBookings, type UnreadableValues } from "@booking-events/store";
import type { Command } from "commander";
import type { Context } from "../../context.ts";
import { hasTakenTooLong, readDatabase } from "../../database.ts";
import { CommandFailure } from "../../terminal/command-failure.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printRows, withReferenceKind } from "../../terminal/print.ts";
import { noBookings } from "./no-bookings.ts";

export function addUnreadableCommand(bookings: Command, context: Context): void {
  bookings
    .command("unreadable")
    .summary("count the values that booking_details could not normalise")
    .description(
      "Count the values that booking_details could not normalise, such as a phone number without its country, by " +
        "partner and field, with the reference of one booking. Shows no value. It reads all active bookings, and " +
        "gives up after 30 seconds.",
    )
    .argument("[partner]", "only this partner's bookings")
    .option("--json", "print a JSON array: partner, field, bookings, exampleReference, exampleReferenceKind")
    .action((partner: string | undefined, { json }: { json?: true }) =>
      showUnreadable(context, partner, json === true),
    );
}

async function showUnreadable(context: Context, partner: string | undefined, json: boolean): Promise<void> {
  const counts = await count(context, partner);
  printRows(context.stdout, columns, counts, { json, none: "All values could be normalised." });
}

async function count(context: Context, partner: string | undefined): Promise<UnreadableValues[]> {
  try {
    return await readDatabase(context, async (client) => {
      const counts = await countUnreadableValues(client, { partner });
      if (partner !== undefined && counts.length === 0) await requireBookings(client, partner);
      return counts;
    });
  } catch (error) {
    if (!hasTakenTooLong(error)) throw error;
    throw new CommandFailure(
      "There are too many bookings to read them all in 30 seconds. On a replica, without a statement time-out, run: " +
        "select * from booking_details_unreadable",
      { cause: error },
    );
  }
}

async function requireBookings(client: Queryable, partner: string): Promise<void> {
  if ((await readBookings(client, { partner, limit: 1 })).length === 0) throw noBookings(partner);
}

const columns: Column<UnreadableValues>[] = [
  { header: "PARTNER", value: ({ partner }) => partner, ifNarrow: "shorten" },
  { header: "FIELD", value: ({ field }) => field },
  { header: "BOOKINGS", value: ({ bookings }) => String(bookings) },
  {
    header: "EXAMPLE",
    value: ({ exampleReference, exampleReferenceKind }) => withReferenceKind(exampleReference, exampleReferenceKind),
    ifNarrow: "shorten",
  },
];

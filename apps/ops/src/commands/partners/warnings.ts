import { countDaysKept, countWarnings, type FieldTotal, toSeconds } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printRows } from "../../terminal/print.ts";

export function addWarningsCommand(partners: Command, context: Context): void {
  partners
    .command("warnings")
    .description(
      `Count what partners' events were warned of: the warnings with their events and dry runs in the last ${countDaysKept} days, in UTC ` +
        "and with today, most frequent first. Shows no value and no name that the partner chose.",
    )
    .argument("[id]", "the partner's id. Default: all partners")
    .option("--json", "print a JSON array: partner, field, code, count, firstAt, lastAt, lastEventId")
    .addHelpText(
      "after",
      `
No field: the warning is about the request.
similar-name: an unlisted field resembles this one. ingest_unknown_fields_total has its name.
unreadable-…: the value was kept, but booking_details shows null. The view booking_details_unreadable counts such
bookings, by partner and field.

The partner guide says what to send instead. Counts of some seconds are missing if Redis was slow or down.
ingest_warnings_total has all.`,
    )
    .action(async (id, { json }) => {
      const totals = await countWarnings(context, id);
      printRows(context.stdout, id === undefined ? [partnerColumn, ...columns] : columns, totals, {
        json,
        none: `${id ?? "The partners"} got no warnings in ${countDaysKept} days.`,
      });
    });
}

const partnerColumn: Column<FieldTotal> = { header: "PARTNER", value: ({ partner }) => partner };
const columns: Column<FieldTotal>[] = [
  { header: "FIELD", value: ({ field }) => (field === "" ? "-" : field) },
  { header: "WARNING", value: ({ code }) => code },
  { header: "COUNT", value: ({ count }) => String(count) },
  { header: "FIRST", value: ({ firstAt }) => toSeconds(firstAt) },
  { header: "LAST", value: ({ lastAt }) => toSeconds(lastAt) },
  { header: "LAST EVENT", value: ({ lastEventId }) => lastEventId ?? "a dry run" },
];

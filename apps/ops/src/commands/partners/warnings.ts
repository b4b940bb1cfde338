import { readPartnersFile } from "@booking-events/partners";
import { readWarningCounts, type WarningCount, warningDaysKept } from "@booking-events/queue";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { partnersPath, requirePartner } from "../../partners-file.ts";
import { withRedis } from "../../queue.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printRows, toSeconds } from "../../terminal/print.ts";

export function addWarningsCommand(partners: Command, context: Context): void {
  partners
    .command("warnings")
    .summary("what partners' accepted events were warned of")
    .description(
      `Count the warnings that a partner got with its events and dry runs in the last ${warningDaysKept} days, in UTC ` +
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
      const partners =
        id === undefined ? readPartnersFile(partnersPath(context)).partners : [requirePartner(context, id)];
      const counts = await withRedis(context, (redis) =>
        readWarningCounts({ ...redis, partners: partners.map((partner) => partner.id), now: context.now() }),
      );
      printRows(context.stdout, id === undefined ? [partnerColumn, ...columns] : columns, addUp(counts), {
        json,
        none: `${id ?? "The partners"} got no warnings in ${warningDaysKept} days.`,
      });
    });
}

type Total = Omit<WarningCount, "day">;

/** @param counts newest day first */
function addUp(counts: WarningCount[]): Total[] {
  const totals = new Map<string, Total>();
  for (const { day: _, ...count } of counts) {
    const name = `${count.partner} ${count.field} ${count.code}`;
    const newer = totals.get(name);
    totals.set(name, newer === undefined ? count : addOlder(newer, count));
  }
  return [...totals.values()].sort((one, other) => other.count - one.count);
}

function addOlder(newer: Total, older: Total): Total {
  return {
    ...newer,
    count: newer.count + older.count,
    firstAt: older.firstAt,
    lastEventId: newer.lastEventId ?? older.lastEventId,
  };
}

const partnerColumn: Column<Total> = { header: "PARTNER", value: ({ partner }) => partner };
const columns: Column<Total>[] = [
  { header: "FIELD", value: ({ field }) => (field === "" ? "-" : field) },
  { header: "WARNING", value: ({ code }) => code },
  { header: "COUNT", value: ({ count }) => String(count) },
  { header: "FIRST", value: ({ firstAt }) => toSeconds(firstAt) },
  { header: "LAST", value: ({ lastAt }) => toSeconds(lastAt) },
  { header: "LAST EVENT", value: ({ lastEventId }) => lastEventId ?? "a dry run" },
];

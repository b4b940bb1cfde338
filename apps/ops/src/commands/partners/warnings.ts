import { readWarningCounts, type WarningCount, warningDaysKept } from "@booking-events/queue";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import { requirePartner } from "../../partners-file.ts";
import { withRedis } from "../../queue.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printRows } from "../../terminal/print.ts";

export function addWarningsCommand(partners: Command, context: Context): void {
  partners
    .command("warnings")
    .summary("what a partner's accepted events were warned of")
    .description(
      `Count the warnings that a partner got with its events and dry runs in the last ${warningDaysKept} days, in UTC ` +
        "and with today, most frequent first. Shows no value and no name that the partner chose.",
    )
    .argument("<id>", "the partner's id")
    .option("--json", "print a JSON array: field, code, count, lastDay")
    .addHelpText(
      "after",
      `
similar-name: an unlisted field resembles this one. ingest_unknown_fields_total has its name.
unreadable-…: the value was kept, but booking_details shows null. The view booking_details_unreadable counts such
bookings, by partner and field.

Counts of some seconds are missing if Redis was slow or down. ingest_warnings_total has all.`,
    )
    .action(async (partner, { json }) => {
      requirePartner(context, partner);
      const counts = await withRedis(context, (redis) => readWarningCounts({ ...redis, partner, now: context.now() }));
      printRows(context.stdout, columns, addUp(counts), {
        json,
        none: `${partner} got no warnings in ${warningDaysKept} days.`,
      });
    });
}

interface Total {
  field: string;
  code: string;
  count: number;
  lastDay: string;
}

/** @param counts newest day first */
function addUp(counts: WarningCount[]): Total[] {
  const totals = new Map<string, Total>();
  for (const { field, code, count, day } of counts) {
    const total = totals.get(`${field} ${code}`) ?? { field, code, count: 0, lastDay: day };
    totals.set(`${field} ${code}`, { ...total, count: total.count + count });
  }
  return [...totals.values()].sort((one, other) => other.count - one.count);
}

const columns: Column<Total>[] = [
  { header: "FIELD", value: ({ field }) => field },
  { header: "WARNING", value: ({ code }) => code },
  { header: "COUNT", value: ({ count }) => String(count) },
  { header: "LAST DAY", value: ({ lastDay }) => lastDay },
];

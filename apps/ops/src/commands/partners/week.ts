import { readWeeks, type Week } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../../context.ts";
import type { Column } from "../../terminal/format-table.ts";
import { printRows } from "../../terminal/print.ts";

export function addWeekCommand(partners: Command, context: Context): void {
  partners
    .command("week")
    .description(
      "Count what partners have sent in a week: the events that were accepted in the last 168 hours, and the requests with a valid secret that got a 4xx, " +
        "beside those of the week before. Dry runs don't count. Partners that send nothing are listed, too.",
    )
    .argument("[id]", "the partner's id. Default: all partners")
    .option("--json", "print a JSON array: partner, accepted, refused, acceptedWeekBefore, refusedWeekBefore, hours")
    .addHelpText("after", "\nCounts of some seconds are missing if Redis was slow or down; the metrics have all.")
    .action(async (id, { json }) => {
      printRows(context.stdout, columns, await readWeeks(context, id), { json, none: "There are no partners." });
    });
}

const columns: Column<Week & { partner: string }>[] = [
  { header: "PARTNER", value: ({ partner }) => partner },
  { header: "ACCEPTED", value: ({ accepted }) => String(accepted) },
  { header: "REFUSED", value: ({ refused }) => String(refused) },
  { header: "ACCEPTED BEFORE", value: ({ acceptedWeekBefore }) => String(acceptedWeekBefore) },
  { header: "REFUSED BEFORE", value: ({ refusedWeekBefore }) => String(refusedWeekBefore) },
];

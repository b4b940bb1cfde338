import { estimateRemovals, type Removal } from "@booking-events/operations";
import type { Command } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import type { Column } from "../terminal/format-table.ts";
import { printJson, printLine, printTable } from "../terminal/print.ts";

export function addRetentionCommand(program: Command, context: Context): void {
  program
    .command("retention")
    .summary("show what is old enough to be removed")
    .description(
      "Show what maintenance would remove now, by RETENTION_DAYS, DELETED_RETENTION_DAYS and " +
        "DEAD_LETTER_RETENTION_DAYS of the workers, of which 0 means forever. Removes nothing. Rows and bytes of tables " +
        "over 16 MB are PostgreSQL's estimates, so this is fast, however large the tables are.",
    )
    .requiredOption("--dry-run", "required, since only maintain removes anything")
    .option("--json", "print a JSON array: table, what, before, rows, bytes (null: forever, for the last three)")
    .action(async ({ json }) => {
      const removals = await estimateRemovals(context);
      if (json) return printJson(context.stdout, removals);
      printTable(context.stdout, columns, removals);
      printLine(context.stderr, "Rows and bytes of tables over 16 MB are estimates.");
    });
}

const columns: Column<Removal>[] = [
  { header: "TABLE", value: ({ table }) => table },
  { header: "WHAT", value: ({ what }) => what },
  { header: "FROM BEFORE", value: ({ before }) => before?.toISOString().slice(0, 10) ?? "kept forever" },
  { header: "ROWS", value: ({ rows }) => rows?.toLocaleString("en") ?? "" },
  { header: "BYTES", value: ({ bytes }) => bytes?.toLocaleString("en") ?? "" },
];

import { once } from "node:events";
import { describeCount, exportedColumns, exportRows, OperationFailure } from "@booking-events/operations";
import { type Command, Option } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { partnerOption } from "../terminal/arguments.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { parsePast } from "../terminal/duration.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printLine } from "../terminal/print.ts";
import { printableLines } from "../terminal/printable.ts";

export function addExportCommands(program: Command, context: Context): void {
  const commands = program
    .command("export")
    .description(
      "Write all bookings or events to stdout, as they are at one moment. It is recorded in the audit, with the number of " +
        "rows, since the data leaves the service.",
    )
    .addHelpText("after", "\nExample:\n  $ ops export bookings --csv --partner acme > bookings.csv");
  addExportCommand(commands, context, "bookings", "whose state was decided by an event received");
  addExportCommand(commands, context, "events", "received");
}

function addExportCommand(commands: Command, context: Context, what: "bookings" | "events", selected: string): void {
  const parseTime = (text: string) => parsePast(text, context.now());
  commands
    .command(what)
    .description(
      `Write ${what} to stdout: ${exportedColumns[what].join(", ")}, and with --payload also payload, as JSON.`,
    )
    .addOption(new Option("--csv", "as CSV (RFC 4180)").conflicts("ndjson"))
    .option("--ndjson", "as one JSON object a line")
    .addOption(partnerOption(`only ${what}`))
    .option("--since <time>", `only ${what} ${selected} since, such as 2026-11-20T12:00:00Z, 02:00 or 7d`, parseTime)
    .option("--until <time>", "only before", parseTime)
    .option("--payload", "also what partners sent, with personal data of guests")
    .addOption(byOption())
    .addHelpText(
      "after",
      `
In CSV, a cell that a spreadsheet could take for a formula, or that begins with an apostrophe, gets an apostrophe before
it. JSON lines hold every value as it is.

If the reader of the output ends early, as head does, the command says so and ends with 1.

Example:
  $ ops export ${what} --csv --partner acme --since 7d > ${what}.csv`,
    )
    .action(async ({ csv, ndjson, payload, by, ...filter }) => {
      if (csv === undefined && ndjson === undefined)
        throw new CommandFailure("Say in which format: --csv or --ndjson.", { exitCode: 2 });
      const output = new CountingOutput(context);
      context.atSignal(() => `Interrupted. ${output.describe()}`);
      const request = { what, format: csv ? "csv" : "ndjson", withPayload: payload === true, ...filter } as const;
      const count = await exportRows(actAs(context, by), request, (lines, rows) => output.write(lines, rows));
      printLine(context.stderr, `Exported ${describeCount(count, what.slice(0, -1))}.`);
    });
}

/** Waits for the reader of a pipe, and notices when it goes. */
class CountingOutput {
  readonly #stdout: Context["stdout"];
  #failure: Error | undefined;
  #rows = 0;

  constructor({ stdout }: Context) {
    this.#stdout = stdout;
    stdout.on("error", (error: Error) => {
      this.#failure = error;
    });
  }

  async write(lines: string, rows: number): Promise<void> {
    const shown = this.#stdout.isTTY === true ? printableLines(lines) : lines;
    if (!this.#stdout.write(shown)) await once(this.#stdout, "drain");
    if (this.#failure !== undefined)
      throw new OperationFailure(`The output was closed. ${this.describe()}`, { cause: this.#failure });
    this.#rows += rows;
  }

  describe(): string {
    return `The export is not complete: it ended after ${this.#rows} rows.`;
  }
}

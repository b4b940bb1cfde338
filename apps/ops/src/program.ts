import { PartnersError } from "@booking-events/partners";
import { describeError, StartError, version } from "@booking-events/runtime";
import { Command, CommanderError } from "commander";
import { addBookingsCommands } from "./commands/bookings.ts";
import { addDeadLettersCommands } from "./commands/dead-letters.ts";
import { addEventsCommands } from "./commands/events.ts";
import { addMigrateCommand } from "./commands/migrate.ts";
import { addPartnersCommands } from "./commands/partners.ts";
import type { Context } from "./context.ts";
import { CommandFailure } from "./terminal/command-failure.ts";
import { printLine } from "./terminal/print.ts";
import { printable } from "./terminal/printable.ts";

/** Help for what is no terminal, such as a file. */
const helpWidth = 100;

/**
 * Runs one command.
 *
 * @param args without the programs that come first on the command line
 * @returns the exit code: 0 fine, 1 refused or failed, 2 called wrongly
 */
export async function runProgram(args: string[], context: Context): Promise<0 | 1 | 2> {
  try {
    await createProgram(context).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    // The message has been printed by then. Of these errors, only those of --help and the like have exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CommandFailure || error instanceof PartnersError) {
      printLine(context.stderr, printable(error.message));
      return error instanceof CommandFailure ? error.exitCode : 1;
    }
    if (error instanceof StartError) printLine(context.stderr, error.message);
    else reportBug(context, error);
    return 1;
  }
}

function createProgram(context: Context): Command {
  const { stdout, stderr } = context;
  const program = new Command("npm run ops --")
    .description("Looks after the booking-event receiver: its partners, what they sent, and what became of it.")
    .version(version, "--version", "print the version")
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? helpWidth,
      getErrHelpWidth: () => stderr.columns ?? helpWidth,
    })
    .exitOverride()
    .showHelpAfterError("Add --help to see how to call it.")
    .addHelpText(
      "after",
      `
Environment:
  PARTNERS_FILE   the partners file of ingest (default: ./partners.json)
  DATABASE_URL    the worker's PostgreSQL; events, bookings, dead-letters and migrate need it
  REDIS_URL       the queue; dead-letters replay needs it, partners list shows more with it;
                  and QUEUE_PREFIX, if yours is not the default
All are read from .data/env too, which npm start writes. All times are in UTC.

Exit codes: 0 fine; 1 refused or failed, and one sentence on stderr says why; 2 called wrongly.

Examples:
  $ npm run ops -- partners add acme --name "Acme Travel"
  $ npm run ops -- events list --partner acme
  $ npm run ops -- bookings show acme TRIP-1
In scripts, npm prints nothing of its own: npm run -s ops -- partners list --json`,
    );
  addPartnersCommands(program, context);
  addEventsCommands(program, context);
  addBookingsCommands(program, context);
  addDeadLettersCommands(program, context);
  addMigrateCommand(program, context);
  return program;
}

/** Without the message, which could hold data. */
function reportBug({ stderr }: Context, error: unknown): void {
  const { type, code, message, stack } = describeError(error);
  printLine(stderr, `This is an error in the program itself: ${[type, code, message].filter(Boolean).join(" ")}`);
  if (stack !== undefined) printLine(stderr, stack);
}

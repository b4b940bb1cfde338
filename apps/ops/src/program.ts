import { isTestPartner, OperationFailure, openContext } from "@booking-events/operations";
import { describeError, StartError, version } from "@booking-events/runtime";
import { Command, CommanderError, type CommandUnknownOpts } from "@commander-js/extra-typings";
import { addArrivalsCommand } from "./commands/arrivals.ts";
import { addAuditCommand } from "./commands/audit.ts";
import { addBookingsCommands } from "./commands/bookings.ts";
import { addDeadLettersCommands } from "./commands/dead-letters.ts";
import { addDoctorCommand } from "./commands/doctor.ts";
import { addEventsCommands } from "./commands/events.ts";
import { addExportCommands } from "./commands/export.ts";
import { addFeedCommands } from "./commands/feed.ts";
import { addFindCommand } from "./commands/find.ts";
import { addGuestsCommands } from "./commands/guests.ts";
import { addImportCommand } from "./commands/import.ts";
import { addMaintainCommand } from "./commands/maintain.ts";
import { addMigrateCommand } from "./commands/migrate.ts";
import { addPartnersCommands } from "./commands/partners.ts";
import { addQueueCommands } from "./commands/queue.ts";
import { addRefusalsCommand } from "./commands/refusals.ts";
import { addRetentionCommand } from "./commands/retention.ts";
import { addStatusCommand } from "./commands/status.ts";
import { addSubscriptionsCommands } from "./commands/subscriptions.ts";
import type { Context, Terminal } from "./context.ts";
import { CommandFailure } from "./terminal/command-failure.ts";
import { printLine } from "./terminal/print.ts";
import { printable } from "./terminal/printable.ts";

/** For output that is not a terminal. */
const helpWidth = 100;

/**
 * Runs one command.
 *
 * @param args without the name of the program
 * @returns the exit code: 0 success, 1 refused or failed, 2 wrong usage
 */
export async function runProgram(args: string[], terminal: Terminal): Promise<0 | 1 | 2> {
  const { environment, now, stderr } = terminal;
  const notify = (sentences: string) => printLine(stderr, printable(sentences));
  const { close, ...operations } = openContext(
    { environment, now, notify },
    { maxConnections: 1, applicationName: "booking-events-ops" },
  );
  const exitCode = await runCommand(args, { ...terminal, ...operations });
  await close();
  return exitCode;
}

async function runCommand(args: string[], context: Context): Promise<0 | 1 | 2> {
  try {
    await createProgram(context).parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    // Commander has printed the message. Only --help and --version have the exit code 0.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2;
    if (error instanceof CommandFailure || error instanceof OperationFailure) {
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
  const program = new Command("ops")
    .description(
      "Operate the booking-event receiver: partners, events, bookings, dead letters, subscriptions and guests.",
    )
    .version(version, "--version", "print the version")
    .option("--test-partners", `what test partners have sent: for ${areApart.join(", ")}, if they name no partner`)
    .hook("preAction", (self, command) => chooseBookings(self, command, context))
    .configureOutput({
      writeOut: (text) => stdout.write(text),
      writeErr: (text) => stderr.write(text),
      getOutHelpWidth: () => stdout.columns ?? helpWidth,
      getErrHelpWidth: () => stderr.columns ?? helpWidth,
    })
    .configureHelp({ subcommandDescription: (command) => summarize(command.description()) })
    .exitOverride()
    .showHelpAfterError("Add --help to see the usage.")
    .addHelpText(
      "after",
      `
Environment:
  PARTNERS_FILE   the partners file of ingest (default: ./partners.json)
  DATABASE_URL    the worker's PostgreSQL: required for all but partners, refusals, and queue
                  pause and resume, which need it only to be recorded
  DATABASE_SCHEMA the schema of the worker's tables, if it is not public
  REDIS_URL       the queue: required for status, doctor, maintain, queue, dead-letters replay,
                  bookings stuck and restore, import, guests erase, refusals, partners warnings and
                  week; others show more with it. For a cluster or sentinels, REDIS_CLUSTER or
                  REDIS_SENTINELS instead: see docs/operations/variables.md
  DIGEST_KEY      the worker's, if it has one: required for guests, find, and bookings show, repair,
                  renormalise and restore
  OPERATOR        who you are, for ops audit, if you don't say it by --by
  QUEUE_PREFIX    the prefix of the queue, if it is not the default
  QUEUE_SHARDS    the number of its shards, if it is not 1
These are also read from .data/env and .data/ops.env, which npm start writes. All times are in UTC.

What follows -- is no option: a reference that begins with - comes after it, as in the last example.

Exit codes: 0 success; 1 refused or failed, with the reason on stderr; 2 wrong usage.

Examples:
  $ ops status
  $ ops partners add acme --name "Acme Travel"
  $ ops bookings stuck
  $ ops bookings show acme TRIP-1 --at 2h
  $ ops bookings restore acme TRIP-1 --at 2h --dry-run
  $ ops refusals --partner acme --since 1h
  $ ops export bookings --csv --partner acme > bookings.csv
  $ ops bookings show acme -- -1
With Compose, ops is deploy/ops. From the sources, it is npm run ops --; in scripts, npm run -s ops --.`,
    );
  addStatusCommand(program, context);
  addDoctorCommand(program, context);
  addPartnersCommands(program, context);
  addFindCommand(program, context);
  addArrivalsCommand(program, context);
  addEventsCommands(program, context);
  addBookingsCommands(program, context);
  addDeadLettersCommands(program, context);
  addFeedCommands(program, context);
  addSubscriptionsCommands(program, context);
  addGuestsCommands(program, context);
  addRefusalsCommand(program, context);
  addAuditCommand(program, context);
  addExportCommands(program, context);
  addImportCommand(program, context);
  addQueueCommands(program, context);
  addMigrateCommand(program, context);
  addMaintainCommand(program, context);
  addRetentionCommand(program, context);
  return program;
}

/** In a list of commands, what each says first is enough. */
function summarize(description: string): string {
  const [first = ""] = description.split(/[.:](?: |$)/, 1);
  return first.charAt(0).toLowerCase() + first.slice(1);
}

/** Commands whose bookings and events are those of test partners, or those of all others. */
const areApart = ["arrivals", "events", "bookings", "dead-letters", "export"];

/** Commands of a test partner, and those with --test-partners, read and change what test partners have sent. */
function chooseBookings(program: CommandUnknownOpts, command: CommandUnknownOpts, context: Context): void {
  const isAsked = (program.opts() as { testPartners?: true }).testPartners === true;
  let group = command;
  while (group.parent?.parent != null) group = group.parent;
  if (!areApart.includes(group.name())) {
    if (isAsked) throw new CommandFailure(`--test-partners is only for ${areApart.join(", ")}.`, { exitCode: 2 });
    return;
  }
  const ofArgument = command.args[command.registeredArguments.findIndex((argument) => argument.name() === "partner")];
  const partner = ofArgument ?? (command.opts() as { partner?: string }).partner;
  context.isTest = isAsked || (partner !== undefined && isTestPartner(context, partner));
}

/** The message is left out if it could hold data. */
function reportBug({ stderr }: Context, error: unknown): void {
  const { type, code, message, stack } = describeError(error);
  printLine(stderr, `Unexpected error, probably a bug: ${[type, code, message].filter(Boolean).join(" ")}`);
  if (stack !== undefined) printLine(stderr, stack);
}

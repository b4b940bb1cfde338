import { once } from "node:events";
import { createReadStream, openSync, statSync, writeFileSync } from "node:fs";
import { checkImport, importBookings, parseInstant, prepareImport, type Rejection } from "@booking-events/operations";
import { eventKinds } from "@booking-events/schema";
import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { actAs, byOption } from "../terminal/operator.ts";
import { printJson, printLine } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";
import { createProgress, type Progress } from "./import/progress.ts";
import { requireJsonLines } from "./import/require-json-lines.ts";

/** An older export says little about today's bookings. */
const maxAgeDays = 30;
const dayMs = 86_400_000;

export function addImportCommand(program: Command, context: Context): void {
  program
    .command("import")
    .description(
      "Import a partner's existing bookings. Each line of the file is a booking as JSON, as the partner would send it. " +
        "Lines are checked by the same rules and applied by the worker like any other event.",
    )
    .argument("<file>", "a file of JSON lines, or - for standard input")
    .requiredOption("--partner <id>", "whose bookings they are")
    .requiredOption(
      "--as-of <time>",
      "when the export was made, such as 2026-11-20T12:00:00Z. Events that were received later win over the import",
      (text) => parseAsOf(text, context.now()),
    )
    .addOption(new Option("--kind <kind>", "what each line is").choices(eventKinds).default("create"))
    .option("--rejected <file>", "also write why lines were rejected to this file, as JSON lines")
    .option("--dry-run", "only check the lines")
    .addOption(byOption())
    .option("--json", "print a JSON object: lines, queued, known, rejected")
    .addHelpText(
      "after",
      `
Lines that break a rule are rejected, and told on stderr by their numbers and never their values; all others are
imported. If the import ends early, run the same command again: lines that were queued before are recognised by the
file's content and the time, and not queued again.

Of two lines of a booking, the one with the higher number wins. So correct rejected lines in place, and run the same
command on the whole file again. To correct a line that was imported already, import it with a later time.

The import waits while the queue is long, so partners' events are neither refused nor delayed for more than about two
seconds. It needs PARTNERS_FILE, REDIS_URL and DATABASE_URL, and MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER and
BODY_LIMIT_BYTES (for a line) if ingest has them. The time may be up to ${maxAgeDays} days ago, and not before what
the workers' RETENTION_DAYS keeps. Ctrl-C ends the import, and says how far it is.

Examples:
  $ ops import bookings.ndjson --partner acme --as-of 2026-11-20T12:00:00Z --dry-run
  $ gunzip -c bookings.gz | ops import - --partner acme --as-of 2026-11-20T12:00:00Z`,
    )
    .action(async (file, { partner, kind, asOf, rejected, dryRun, by, json }) => {
      const isDryRun = dryRun === true;
      const acting = isDryRun ? undefined : actAs(context, by);
      const source = await prepareImport(context, { partner, kind, asOf }, { isDryRun });
      if (isSameFile(file, rejected))
        throw new CommandFailure("--rejected must be another file than the one with the bookings.", { exitCode: 2 });
      const progress = createProgress(context);
      context.atSignal(() => describeInterruption(progress, isDryRun));
      const chunks = await openInput(context, file, source.maxLineBytes);
      const reported = { ...progress, reject: openRejections(context, rejected) };
      if (acting === undefined) await checkImport(chunks, source, reported);
      else await importBookings(acting, chunks, source, reported);
      if (json) printJson(context.stdout, progress.counts);
      else printLine(context.stdout, summarize(progress, isDryRun));
      if (progress.counts.rejected > 0)
        throw new CommandFailure(
          "Correct the rejected lines in place, and run the same command on the whole file again. To change other " +
            "lines, which were imported already, a later --as-of is needed.",
        );
    });
}

/** A duration would give another time, and so other ids, when the command is run again. */
function parseAsOf(text: string, now: Date): Date {
  const time = parseInstant(text);
  if (time === undefined) throw new InvalidArgumentError("Give a time with its zone, such as 2026-11-20T12:00:00Z.");
  if (time > now) throw new InvalidArgumentError("The time is in the future.");
  if (now.getTime() - time.getTime() > maxAgeDays * dayMs)
    throw new InvalidArgumentError(
      `The time is more than ${maxAgeDays} days ago. Make a new export: partners have sent changes since, and events ` +
        "from before the time that RETENTION_DAYS keeps are not applied.",
    );
  return time;
}

/** Otherwise the file would be emptied before it is read. */
function isSameFile(input: string, output: string | undefined): boolean {
  if (output === undefined || input === "-") return false;
  const second = orUnwritable(output, () => statSync(output, { throwIfNoEntry: false }));
  try {
    const first = statSync(input);
    return first.ino === second?.ino && first.dev === second.dev;
  } catch (error) {
    throw unreadable(input, error);
  }
}

async function openInput(
  { stdin }: Context,
  file: string,
  maxLineBytes: number,
): Promise<AsyncIterable<Buffer | string>> {
  if (file === "-") return requireJsonLines(stdin, "Standard input", maxLineBytes);
  const stream = createReadStream(file);
  await once(stream, "open").catch((error: Error) => {
    throw unreadable(file, error);
  });
  return requireJsonLines(readStream(stream, file), file, maxLineBytes);
}

async function* readStream(stream: AsyncIterable<Buffer>, file: string): AsyncGenerator<Buffer, void> {
  try {
    yield* stream;
  } catch (error) {
    throw unreadable(file, error);
  }
}

function unreadable(file: string, error: unknown): CommandFailure {
  return new CommandFailure(`${file} can't be read (${codeOf(error)}). Check its name and its permissions.`, {
    cause: error,
  });
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown }).code ?? error);
}

/** Reports each rejected line to stderr, and to a file if there is one, which stays open until the process ends. */
function openRejections({ stderr }: Context, path: string | undefined) {
  const file = path === undefined ? undefined : orUnwritable(path, () => openSync(path, "w"));
  return async (rejection: Rejection): Promise<void> => {
    const texts = describeRejection(rejection).map((text) => `${printable(text)}\n`);
    if (!stderr.write(texts.join(""))) await once(stderr, "drain");
    if (path !== undefined && file !== undefined)
      orUnwritable(path, () => writeFileSync(file, `${JSON.stringify(rejection)}\n`));
  };
}

function orUnwritable<Result>(path: string, work: () => Result): Result {
  try {
    return work();
  } catch (error) {
    throw new CommandFailure(
      `${path} can't be written (${codeOf(error)}). Check its name, its permissions and the space on its disk, and run ` +
        "the same command again.",
      { cause: error },
    );
  }
}

function describeRejection({ line, message, violationList }: Rejection): string[] {
  if (violationList === undefined) return [`Line ${line}: ${message}`];
  return violationList.map(({ message: rule, propertyPath }) => `Line ${line}: ${propertyPath.join(".")}: ${rule}`);
}

function summarize({ counts }: Progress, isDryRun: boolean): string {
  const { lines, queued, known, rejected } = counts;
  return isDryRun
    ? `${lines} lines: ${lines - rejected} valid, ${rejected} rejected.`
    : `${lines} lines: ${queued} queued, ${known} known already, ${rejected} rejected.`;
}

/** Lines that were being queued at that moment are not counted, and may be in the queue. */
function describeInterruption(progress: Progress, isDryRun: boolean): string {
  const advice = isDryRun
    ? "Nothing was imported."
    : "To go on, run the same command again: lines that were queued are recognised, and not queued again.";
  return `The import was interrupted. ${summarize(progress, isDryRun)} ${advice}`;
}

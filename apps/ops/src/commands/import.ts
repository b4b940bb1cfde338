import { once } from "node:events";
import { createReadStream, openSync, statSync, writeFileSync } from "node:fs";
import { EnqueueError, type NumberedEvent, SequenceInFuture } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { eventKinds } from "@booking-events/schema";
import { readLogHorizon } from "@booking-events/store";
import { type Command, InvalidArgumentError, Option } from "@commander-js/extra-typings";
import type { Context } from "../context.ts";
import { readDatabase, readRetentionRules, withDatabase } from "../database.ts";
import { requirePartner } from "../partners-file.ts";
import { withProducer } from "../queue.ts";
import { requireSameDatabase } from "../require-same-database.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { parseInstant } from "../terminal/duration.ts";
import { printJson, printLine } from "../terminal/print.ts";
import { printable } from "../terminal/printable.ts";
import { checkLine, type ImportSource, isRejection, type Rejection } from "./import/check-line.ts";
import { createProgress, type Progress } from "./import/progress.ts";
import { eventsTogether, type QueueLimits, queueEvents } from "./import/queue-events.ts";
import { readLines } from "./import/read-lines.ts";
import { requireJsonLines } from "./import/require-json-lines.ts";

/** An older export says little about today's bookings. */
const maxAgeDays = 30;
const dayMs = 86_400_000;
/** Characters of events that are queued together, so that memory stays bounded. */
const charactersTogether = 1_048_576;

export function addImportCommand(program: Command, context: Context): void {
  program
    .command("import")
    .summary("import existing bookings")
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
    .option("--json", "print a JSON object: lines, queued, known, rejected")
    .addHelpText(
      "after",
      `
Lines that break a rule are rejected, with their numbers and never their values; all others are imported. If the
import ends early, run the same command again: lines that were queued before are recognised by the file's content and
the time, and not queued again.

Of two lines of a booking, the one with the higher number wins. So correct rejected lines in place, and run the same
command on the whole file again. To correct a line that was imported already, import it with a later time.

The import waits while the queue is long, so partners' events are neither refused nor delayed for more than about two
seconds. It needs PARTNERS_FILE, REDIS_URL and DATABASE_URL, and MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER and
BODY_LIMIT_BYTES (for a line) if ingest has them, and RETENTION_DAYS if the worker has it. The time may be up to
${maxAgeDays} days ago, and not before what RETENTION_DAYS keeps. Ctrl-C ends the import, and says how far it is.

Examples:
  $ ops import bookings.ndjson --partner acme --as-of 2026-11-20T12:00:00Z --dry-run
  $ gunzip -c bookings.gz | ops import - --partner acme --as-of 2026-11-20T12:00:00Z`,
    )
    .action(async (file, { partner, kind, asOf, rejected, dryRun, json }) => {
      const { country } = requirePartner(context, partner, "Nothing was imported.");
      if (isSameFile(file, rejected))
        throw new CommandFailure("--rejected must be another file than the one with the bookings.", { exitCode: 2 });
      const { BODY_LIMIT_BYTES, MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER } = parseEnvironment(limits, context.environment);
      const source: ImportSource = { partner, country, kind, asOf, maxLineBytes: BODY_LIMIT_BYTES };
      requireKept(asOf, context);
      if (!dryRun) await requireAfterHorizon(asOf, context);
      const queueLimits = { maxBacklog: MAX_BACKLOG, memoryHighWater: REDIS_MEMORY_HIGH_WATER };
      const progress = createProgress(context);
      context.atSignal(() => describeInterruption(progress, dryRun));
      const report = openRejections(context, rejected);
      const lines = readLines(await openInput(context, file, source.maxLineBytes), source.maxLineBytes);
      const checked = checkLines(lines, source, progress, report);
      if (dryRun) for await (const _events of checked);
      else await queueAll(context, checked, progress, queueLimits);
      if (json) printJson(context.stdout, progress.counts);
      else printLine(context.stdout, summarize(progress, dryRun));
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

/** Otherwise all lines would be queued, and expire. */
function requireKept(asOf: Date, context: Context): void {
  const { retentionDays } = readRetentionRules(context);
  if (retentionDays > 0 && context.now().getTime() - asOf.getTime() > retentionDays * dayMs)
    throw expires(asOf, `RETENTION_DAYS is ${retentionDays}`);
}

/** The worker may keep less than this command's RETENTION_DAYS says, or may have kept less before. */
async function requireAfterHorizon(asOf: Date, context: Context): Promise<void> {
  const horizon = await readDatabase(context, readLogHorizon);
  if (horizon !== null && asOf < horizon) throw expires(asOf, `the log begins at ${horizon.toISOString()}`);
}

function expires(asOf: Date, because: string): CommandFailure {
  return new CommandFailure(
    `No line would be applied, since ${because}, and events of ${asOf.toISOString()} expire. Make a new export, and ` +
      "import it soon. Nothing was imported.",
  );
}

const limits = {
  BODY_LIMIT_BYTES: variables.BODY_LIMIT_BYTES,
  MAX_BACKLOG: variables.MAX_BACKLOG,
  REDIS_MEMORY_HIGH_WATER: variables.REDIS_MEMORY_HIGH_WATER,
};

/** Otherwise the file would be emptied before it is read. */
function isSameFile(input: string, output: string | undefined): boolean {
  if (output === undefined) return false;
  const first = orFail(unreadable, input, () => statSync(input, { throwIfNoEntry: false }));
  const second = orFail(unwritable, output, () => statSync(output, { throwIfNoEntry: false }));
  return first !== undefined && first.ino === second?.ino && first.dev === second.dev;
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
  return new CommandFailure(`${file} can't be read (${describeCode(error)}). Check its name and its permissions.`, {
    cause: error,
  });
}

/** @yields events to queue together */
async function* checkLines(
  lines: ReturnType<typeof readLines>,
  source: ImportSource,
  progress: Progress,
  report: (rejection: Rejection) => Promise<void>,
): AsyncGenerator<NumberedEvent[], void> {
  let events: NumberedEvent[] = [];
  let characters = 0;
  for await (const chunk of lines) {
    for (const line of chunk) {
      const result = checkLine(line, source);
      if (result === null) continue;
      progress.count("lines");
      if (isRejection(result)) {
        progress.count("rejected");
        await report(result);
        continue;
      }
      events.push(result);
      characters += line.bytes?.length ?? 0;
      if (events.length < eventsTogether && characters < charactersTogether) continue;
      yield events;
      events = [];
      characters = 0;
    }
  }
  if (events.length > 0) yield events;
}

async function queueAll(
  context: Context,
  checked: AsyncIterable<NumberedEvent[]>,
  progress: Progress,
  queueLimits: QueueLimits,
): Promise<void> {
  await withDatabase(context, (pool) =>
    withProducer(context, "Nothing was imported.", async (producer) => {
      await requireSameDatabase(context, pool);
      for await (const events of checked) await queueEvents(events, { producer, pool }, queueLimits, progress);
    }).catch((error: unknown) => {
      if (!(error instanceof EnqueueError)) throw error;
      const advice =
        error.cause instanceof SequenceInFuture
          ? "The time of --as-of is later than Redis' clock shows, so later events of partners would lose to the import. " +
            "Give the time when the export was made, or wait a moment, and run the same command again."
          : "Redis did not take all events. Check that it runs, and run the same command again.";
      throw new CommandFailure(advice, { cause: error });
    }),
  );
}

/** Reports each rejected line to stderr, and to a file if there is one. */
function openRejections({ stderr }: Context, path: string | undefined) {
  const write = path === undefined ? undefined : openOutput(path);
  return async (rejection: Rejection) => {
    const texts = describeRejection(rejection).map((text) => `${printable(text)}\n`);
    if (!stderr.write(texts.join(""))) await once(stderr, "drain");
    write?.(`${JSON.stringify(rejection)}\n`);
  };
}

/** The file stays open until the process ends. */
function openOutput(path: string): (text: string) => void {
  const file = orFail(unwritable, path, () => openSync(path, "w"));
  return (text) => orFail(unwritable, path, () => writeFileSync(file, text));
}

function orFail<Result>(
  toFailure: (path: string, error: unknown) => CommandFailure,
  path: string,
  work: () => Result,
): Result {
  try {
    return work();
  } catch (error) {
    throw toFailure(path, error);
  }
}

function unwritable(path: string, error: unknown): CommandFailure {
  return new CommandFailure(
    `${path} can't be written (${describeCode(error)}). Check its name, its permissions and the space on its disk, and ` +
      "run the same command again.",
    { cause: error },
  );
}

function describeCode(error: unknown): string {
  return String((error as { code?: unknown }).code ?? error);
}

function describeRejection({ line, message, violationList }: Rejection): string[] {
  if (violationList === undefined) return [`Line ${line}: ${message}`];
  return violationList.map(({ message: rule, propertyPath }) => `Line ${line}: ${propertyPath.join(".")}: ${rule}`);
}

function summarize({ counts }: Progress, isDryRun: true | undefined): string {
  const { lines, queued, known, rejected } = counts;
  return isDryRun
    ? `${lines} lines: ${lines - rejected} valid, ${rejected} rejected.`
    : `${lines} lines: ${queued} queued, ${known} known already, ${rejected} rejected.`;
}

/** Lines that were being queued at that moment are not counted, and may be in the queue. */
function describeInterruption(progress: Progress, isDryRun: true | undefined): string {
  const advice = isDryRun
    ? "Nothing was imported."
    : "To go on, run the same command again: lines that were queued are recognised, and not queued again.";
  return `The import was interrupted. ${summarize(progress, isDryRun)} ${advice}`;
}

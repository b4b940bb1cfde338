import { userInfo } from "node:os";
import {
  type DeadLetter,
  findDeadLetter,
  findProcessed,
  listDeadLetters,
  type Queryable,
  resolveDeadLetter,
} from "@booking-events/store";
import type { Command } from "commander";
import type { Context } from "../context.ts";
import { readDatabase, withDatabase } from "../database.ts";
import { parseEventId, parseLimitUpTo, parseNote } from "../terminal/arguments.ts";
import { CommandFailure } from "../terminal/command-failure.ts";
import { confirm } from "../terminal/confirm.ts";
import type { Column } from "../terminal/format-table.ts";
import {
  printFields,
  printHeading,
  printJson,
  printLine,
  printTable,
  toSeconds,
  withReferenceKind,
} from "../terminal/print.ts";
import { isInQueue, type Replay, replayDeadLetters } from "./replay-dead-letters.ts";

const defaultLimit = 100;
const maxLimit = 10_000;

export function addDeadLettersCommands(program: Command, context: Context): void {
  const deadLetters = program
    .command("dead-letters")
    .summary("events that were accepted and could not be applied")
    .description(
      "Events that were accepted and could not be applied. Mend the cause, then replay them: each is applied under its " +
        "own id, in its own place. Or discard what must not be applied.",
    );

  deadLetters
    .command("list")
    .summary("list those that are open, the oldest first")
    .description("List the dead letters that are open, the oldest first. Shows nothing of guests.")
    .option("--partner <id>", "only this partner's")
    .option("--code <code>", "only those with this error code")
    .option("--resolved", "also those of which nothing is left to do")
    .option("--limit <number>", `how many, up to ${maxLimit}`, parseLimitUpTo(maxLimit), defaultLimit)
    .option(
      "--json",
      "print a JSON array: eventId, partner, kind, referenceKind, reference, sequence, errorCode, error, attempts, " +
        "failedAt, replayedAt, replayedBy, resolvedAt, resolvedBy, resolution",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- dead-letters list --code STALLED
  $ npm run -s ops -- dead-letters list --json | jq -r .[].eventId`,
    )
    .action((options: ListOptions) => list(context, options));

  deadLetters
    .command("show")
    .summary("show one, and what became of it")
    .description(
      "Show one dead letter, and what became of it. What was queued holds guests' personal data, and is shown only " +
        "with --payload.",
    )
    .argument("<eventId>", "a UUID", parseEventId)
    .option("--payload", "show what was queued: guests' personal data")
    .option("--json", "print a JSON object like those of the list, with envelope if asked for")
    .addHelpText("after", "\nExample:\n  $ npm run ops -- dead-letters show 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e")
    .action((eventId: string, options: ShowOptions) => show(context, eventId, options));

  deadLetters
    .command("replay")
    .summary("put them back into the queue, and say what became of them")
    .description(
      "Put dead letters back into the queue, each with the event's own id and place in the order, and say what became " +
        "of them. To do so twice is safe: an event that has been applied is not applied again.",
    )
    .argument("[eventId...]", "UUIDs", collectEventIds)
    .option("--all", "all that are open, or those of --partner and --code")
    .option("--partner <id>", "with --all: only this partner's")
    .option("--code <code>", "with --all: only those with this error code")
    .option("--yes", "don't ask")
    .option("--by <name>", "who replays them, for the record", parseNote, defaultName())
    .option("--no-wait", "don't wait for what becomes of them")
    .option("--json", "print a JSON array: eventId, result (applied, dead, waiting, invalid or resolved), detail")
    .addHelpText(
      "after",
      `
Examples:
  $ npm run ops -- dead-letters replay 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e
  $ npm run ops -- dead-letters replay --all --code TypeError --yes     # after the release that mends it`,
    )
    .action((eventIds: string[], options: ReplayOptions) => replay(context, eventIds, options));

  deadLetters
    .command("discard")
    .summary("close them: the events are never applied")
    .description("Close dead letters, so that their events are never applied. The rows stay, with the reason.")
    .argument("<eventId...>", "UUIDs", collectEventIds)
    .requiredOption("--reason <text>", "why, for the record", parseNote)
    .option("--yes", "don't ask")
    .option("--by <name>", "who discards them, for the record", parseNote, defaultName())
    .addHelpText(
      "after",
      `
Example:
  $ npm run ops -- dead-letters discard 0199a6f2-7c1e-7d0a-9d4b-3f1a2b4c5d6e --reason "acme sent it again"`,
    )
    .action((eventIds: string[], options: DiscardOptions) => discard(context, eventIds, options));
}

interface ListOptions {
  partner?: string;
  code?: string;
  resolved?: true;
  limit: number;
  json?: true;
}

interface ShowOptions {
  payload?: true;
  json?: true;
}

interface ReplayOptions {
  all?: true;
  partner?: string;
  code?: string;
  yes?: true;
  by: string;
  wait: boolean;
  json?: true;
}

interface DiscardOptions {
  reason: string;
  yes?: true;
  by: string;
}

async function list(context: Context, { partner, code, resolved, limit, json }: ListOptions): Promise<void> {
  const filter = { partner, errorCode: code, includeResolved: resolved === true, limit: limit + 1 };
  const found = await readDatabase(context, (client) => listDeadLetters(client, filter));
  const letters = found.slice(0, limit);
  if (found.length > limit) printLine(context.stderr, `There are more than these ${limit}: --limit shows them.`);
  if (json) printJson(context.stdout, letters);
  else if (letters.length === 0) printLine(context.stdout, "No dead letters.");
  else printTable(context.stdout, resolved ? [...columns, stateColumn] : columns, letters);
}

const columns: Column<DeadLetter>[] = [
  { header: "FAILED", value: ({ failedAt }) => toSeconds(failedAt) },
  { header: "CODE", value: ({ errorCode }) => errorCode },
  { header: "ATTEMPTS", value: ({ attempts }) => String(attempts), ifNarrow: "drop" },
  { header: "EVENT ID", value: ({ eventId }) => eventId, ifNarrow: "below" },
  { header: "KIND", value: ({ kind }) => kind ?? "?", ifNarrow: "drop" },
  { header: "PARTNER", value: ({ partner }) => partner ?? "?", ifNarrow: "shorten" },
  {
    header: "REFERENCE",
    value: ({ reference, referenceKind }) => (reference === null ? "?" : withReferenceKind(reference, referenceKind)),
    ifNarrow: "shorten",
  },
];
const stateColumn: Column<DeadLetter> = { header: "STATE", value: describeState, ifNarrow: "shorten" };

function describeState(letter: DeadLetter): string {
  if (letter.resolution !== null) return letter.resolution;
  return isInQueue(letter) ? "replayed, waiting" : "open";
}

async function show(context: Context, eventId: string, { payload, json }: ShowOptions): Promise<void> {
  const found = await readDatabase(context, (client) => findDeadLetter(client, eventId));
  if (found === undefined) throw noLetter(eventId);
  const { envelope, ...letter } = found;
  const queued: unknown = payload ? parseIfJson(envelope.toString()) : undefined;
  if (json) {
    printJson(context.stdout, { ...letter, envelope: queued });
    return;
  }
  const { stdout } = context;
  printHeading(stdout, `Dead letter ${eventId}: ${describeState(letter)}`);
  printLine(stdout);
  printFields(stdout, [
    ["Partner", letter.partner],
    ["Kind", letter.kind],
    ["Reference", letter.reference && withReferenceKind(letter.reference, letter.referenceKind)],
    ["Sequence", letter.sequence === null ? null : String(letter.sequence)],
    ["Error", `${letter.errorCode}: ${letter.error}`],
    ["Attempts", String(letter.attempts)],
    ["Failed", letter.failedAt.toISOString()],
    ["Replayed", describeDeed(letter.replayedAt, letter.replayedBy)],
    ["Resolved", describeDeed(letter.resolvedAt, letter.resolvedBy)],
  ]);
  if (!payload) return;
  printLine(stdout);
  printHeading(stdout, "Queued");
  printJson(stdout, queued);
}

/** What was queued may be anything; then it is shown as text. */
function parseIfJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function describeDeed(at: Date | null, by: string | null): string | null {
  return at === null ? null : `${at.toISOString()} by ${by}`;
}

async function replay(context: Context, eventIds: string[], options: ReplayOptions): Promise<void> {
  const { all, partner, code } = options;
  if (all === undefined && (partner !== undefined || code !== undefined)) {
    throw new CommandFailure("--partner and --code go with --all.", { exitCode: 2 });
  }
  if ((all === true) === eventIds.length > 0) {
    throw new CommandFailure("Give either the ids of events, or --all.", { exitCode: 2 });
  }
  const letters = await readDatabase(context, (client) =>
    all ? listDeadLetters(client, { partner, errorCode: code }) : findAll(client, eventIds),
  );
  if (letters.length === 0) {
    if (options.json) printJson(context.stdout, []);
    else printLine(context.stdout, "No dead letters: nothing to replay.");
    return;
  }
  const open = letters.filter(({ resolvedAt }) => resolvedAt === null);
  if (open.length > 0) await confirm(context, `Replay ${describeLetters(open)}`, options.yes === true);
  const replays = await replayDeadLetters(context, letters, { by: options.by, isAwaited: options.wait });
  if (options.json) printJson(context.stdout, replays);
  else printTable(context.stdout, replayColumns, replays);
  const failed = replays.filter(({ result }) => result === "dead" || result === "invalid").length;
  if (failed > 0)
    throw new CommandFailure(`${failed} of ${replays.length} could not be applied, and stay dead letters.`);
  const waiting = replays.filter(({ result }) => result === "waiting").length;
  if (options.wait && waiting > 0) {
    throw new CommandFailure(
      `${waiting} of ${replays.length} still wait in the queue. Check that the worker runs, and look again: ` +
        "npm run ops -- dead-letters list --resolved",
    );
  }
}

const replayColumns: Column<Replay>[] = [
  { header: "EVENT ID", value: ({ eventId }) => eventId },
  { header: "RESULT", value: ({ result }) => result },
  { header: "DETAIL", value: ({ detail }) => detail, ifNarrow: "shorten" },
];

async function discard(context: Context, eventIds: string[], { reason, yes, by }: DiscardOptions): Promise<void> {
  const letters = await readDatabase(context, (client) => findAll(client, eventIds));
  const open = letters.filter(({ resolvedAt }) => resolvedAt === null);
  for (const { eventId, resolution } of letters.filter((letter) => !open.includes(letter))) {
    printLine(context.stdout, describeClosed(eventId, resolution));
  }
  if (open.length === 0) return;
  await confirm(context, `Discard ${describeLetters(open)}, so that they are never applied`, yes === true);
  const applied: string[] = [];
  await withDatabase(context, async (pool) => {
    for (const { eventId } of open) {
      // Another delivery of the event may have been applied before, or while the operator was asked.
      const outcome = (await findProcessed(pool, [eventId])).get(eventId);
      const resolution = outcome === undefined ? `discarded: ${reason}` : `applied meanwhile: ${outcome}`;
      if (!(await resolveDeadLetter(pool, { eventId, resolvedBy: by, resolution }))) {
        const closed = await findDeadLetter(pool, eventId);
        printLine(context.stdout, describeClosed(eventId, closed?.resolution ?? "deleted"));
        continue;
      }
      if (outcome !== undefined) applied.push(eventId);
      printLine(
        context.stdout,
        outcome === undefined
          ? `Discarded ${eventId}`
          : `${eventId} has been applied (${outcome}), so it can't be discarded. Its letter is closed.`,
      );
    }
  });
  if (applied.length > 0)
    throw new CommandFailure(
      `${applied.length} of ${open.length} could not be discarded, since they had been applied. ` +
        "If a booking must not be as it is now, send an event that says so.",
    );
}

function describeClosed(eventId: string, resolution: string | null): string {
  return `${eventId} is closed already: ${resolution}`;
}

/** @throws CommandFailure before anything was done, when one of them has no dead letter */
async function findAll(client: Queryable, eventIds: string[]): Promise<DeadLetter[]> {
  const letters = await listDeadLetters(client, { eventIds, includeResolved: true });
  const missing = eventIds.find((wanted) => letters.every(({ eventId }) => eventId !== wanted));
  if (missing !== undefined) throw noLetter(missing);
  return letters;
}

function noLetter(eventId: string): CommandFailure {
  return new CommandFailure(
    `Event ${eventId} has no dead letter. See what became of it: npm run ops -- events show ${eventId}`,
  );
}

/** Such as `3 dead letters (2 × STALLED, 1 × 22P02)`. */
function describeLetters(letters: DeadLetter[]): string {
  const counts = [...Map.groupBy(letters, ({ errorCode }) => errorCode)].map(
    ([code, { length }]) => `${length} × ${code}`,
  );
  return `${letters.length} dead letter${letters.length === 1 ? "" : "s"} (${counts.join(", ")})`;
}

function collectEventIds(text: string, previous: string[] = []): string[] {
  return [...previous, parseEventId(text)];
}

function defaultName(): string {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a user that has no name.
    return `uid ${process.getuid?.()}`;
  }
}

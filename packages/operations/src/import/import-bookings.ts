import { EnqueueError, type NumberedEvent, SequenceInFuture } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { readLogHorizon } from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase, readRetentionRules, withDatabase } from "../services/database.ts";
import { requirePartner } from "../services/partners-file.ts";
import { withProducer } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import { checkLine, type ImportSource, isRejection, type Rejection } from "./check-line.ts";
import { eventsTogether, type QueueingProgress, type QueueLimits, queueEvents } from "./queue-events.ts";
import { readLines } from "./read-lines.ts";

const dayMs = 86_400_000;
/** Characters of events that are queued together, so that memory stays bounded. */
const charactersTogether = 1_048_576;

export interface PreparedImport {
  source: ImportSource;
  limits: QueueLimits;
}

/** @throws OperationFailure if no line would be applied */
export async function prepareImport(
  context: Context,
  wanted: Pick<ImportSource, "partner" | "kind" | "asOf">,
  { isDryRun }: { isDryRun: boolean },
): Promise<PreparedImport> {
  const { country, test } = requirePartner(context, wanted.partner, "Nothing was imported.");
  if (test)
    throw new OperationFailure(
      `${wanted.partner} is a test partner, whose bookings are removed after seven days. Nothing was imported.`,
    );
  const { BODY_LIMIT_BYTES, MAX_BACKLOG, REDIS_MEMORY_HIGH_WATER } = parseEnvironment(limits, context.environment);
  requireKept(wanted.asOf, context);
  if (!isDryRun) await requireAfterHorizon(wanted.asOf, context);
  return {
    source: { ...wanted, country, maxLineBytes: BODY_LIMIT_BYTES },
    limits: { maxBacklog: MAX_BACKLOG, memoryHighWater: REDIS_MEMORY_HIGH_WATER },
  };
}

export interface ImportProgress extends QueueingProgress {
  count: (what: "lines" | "queued" | "known" | "rejected", by?: number) => void;
  /** Called for each line that can't be imported. */
  reject: (rejection: Rejection) => Promise<void>;
}

/** Checks each line, and queues those that are valid. */
export function importBookings(
  context: ActingContext,
  chunks: AsyncIterable<Buffer | string>,
  { source, limits: queueLimits }: PreparedImport,
  progress: ImportProgress,
): Promise<void> {
  const { partner, kind, asOf } = source;
  return recordAction(context, { command: "import", arguments: { partner, kind, asOf } }, async (record) => {
    const did = { lines: 0, queued: 0, known: 0, rejected: 0 };
    record.did = did;
    const counted: ImportProgress = {
      ...progress,
      count(what, by = 1) {
        did[what] += by;
        progress.count(what, by);
      },
    };
    await queueAll(context, checkLines(readLines(chunks, source.maxLineBytes), source, counted), counted, queueLimits);
  });
}

/** Only checks each line. */
export async function checkImport(
  chunks: AsyncIterable<Buffer | string>,
  { source }: PreparedImport,
  progress: ImportProgress,
): Promise<void> {
  for await (const _events of checkLines(readLines(chunks, source.maxLineBytes), source, progress));
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

function expires(asOf: Date, because: string): OperationFailure {
  return new OperationFailure(
    `No line would be applied, since ${because}, and events of ${asOf.toISOString()} expire. Make a new export, and ` +
      "import it soon. Nothing was imported.",
  );
}

const limits = {
  BODY_LIMIT_BYTES: variables.BODY_LIMIT_BYTES,
  MAX_BACKLOG: variables.MAX_BACKLOG,
  REDIS_MEMORY_HIGH_WATER: variables.REDIS_MEMORY_HIGH_WATER,
};

/** @yields events to queue together */
async function* checkLines(
  lines: ReturnType<typeof readLines>,
  source: ImportSource,
  { count, reject }: ImportProgress,
): AsyncGenerator<NumberedEvent[], void> {
  let events: NumberedEvent[] = [];
  let characters = 0;
  for await (const chunk of lines) {
    for (const line of chunk) {
      const result = checkLine(line, source);
      if (result === null) continue;
      count("lines");
      if (isRejection(result)) {
        count("rejected");
        await reject(result);
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
  progress: ImportProgress,
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
      throw new OperationFailure(advice, { cause: error });
    }),
  );
}

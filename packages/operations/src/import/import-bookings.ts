import type { NumberedEvent } from "@booking-events/queue";
import { parseEnvironment, variables } from "@booking-events/runtime";
import { readLogHorizon } from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { eventsTogether, type QueueingProgress, withRoom } from "../queue/queue-events.ts";
import { readDatabase, withDatabase } from "../services/database.ts";
import { requirePartner } from "../services/partners-file.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import { readWorkerRules } from "../services/worker-rules.ts";
import { checkLine, type ImportSource, isRejection, type Rejection } from "./check-line.ts";
import { readLines } from "./read-lines.ts";

const dayMs = 86_400_000;
/** Characters of events that are queued together, so that memory stays bounded. */
const charactersTogether = 1_048_576;

/** @throws OperationFailure if no line would be applied */
export async function prepareImport(
  context: Context,
  wanted: Pick<ImportSource, "partner" | "kind" | "asOf">,
  { isDryRun }: { isDryRun: boolean },
): Promise<ImportSource> {
  const { country, test } = requirePartner(context, wanted.partner, "Nothing was imported.");
  if (test)
    throw new OperationFailure(
      `${wanted.partner} is a test partner, whose bookings are removed after seven days. Nothing was imported.`,
    );
  const { BODY_LIMIT_BYTES } = variables;
  const settings = parseEnvironment({ BODY_LIMIT_BYTES }, context.environment);
  if (!isDryRun) await requireKept(wanted.asOf, context);
  return { ...wanted, country, maxLineBytes: settings.BODY_LIMIT_BYTES };
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
  source: ImportSource,
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
    await withDatabase(context, (pool) =>
      withRoom(context, pool, "import", async (queue) => {
        await requireSameDatabase(context, pool);
        for await (const events of checkLines(chunks, source, counted)) await queue(events, counted);
      }),
    );
  });
}

/** Only checks each line. */
export async function checkImport(
  chunks: AsyncIterable<Buffer | string>,
  source: ImportSource,
  progress: ImportProgress,
): Promise<void> {
  for await (const _events of checkLines(chunks, source, progress));
}

/** Otherwise all lines would be queued, and expire. */
async function requireKept(asOf: Date, context: Context): Promise<void> {
  const { retentionDays } = (await readWorkerRules(context)).retention;
  if (retentionDays > 0 && context.now().getTime() - asOf.getTime() > retentionDays * dayMs)
    throw expires(asOf, `RETENTION_DAYS is ${retentionDays}`);
  // Less may have been kept before.
  const horizon = await readDatabase(context, readLogHorizon);
  if (horizon !== null && asOf < horizon) throw expires(asOf, `the log begins at ${horizon.toISOString()}`);
}

function expires(asOf: Date, because: string): OperationFailure {
  return new OperationFailure(
    `No line would be applied, since ${because}, and events of ${asOf.toISOString()} expire. Make a new export, and ` +
      "import it soon. Nothing was imported.",
  );
}

/** @yields events to queue together */
async function* checkLines(
  chunks: AsyncIterable<Buffer | string>,
  source: ImportSource,
  { count, reject }: ImportProgress,
): AsyncGenerator<NumberedEvent[], void> {
  let events: NumberedEvent[] = [];
  let characters = 0;
  for await (const lines of readLines(chunks, source.maxLineBytes)) {
    for (const line of lines) {
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

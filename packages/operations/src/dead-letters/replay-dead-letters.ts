import { setTimeout as sleep } from "node:timers/promises";
import { EnqueueError, type ShardedProducer } from "@booking-events/queue";
import { parseEnvelopeText } from "@booking-events/schema";
import {
  type DeadLetter,
  findDeadLetter,
  findProcessed,
  listDeadLetters,
  markReplayed,
  type Queryable,
  resolveDeadLetter,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import { OperationFailure, stopIfCancelled } from "../operation-failure.ts";
import { withDatabase } from "../services/database.ts";
import { withProducer } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import { arrivingFirst } from "./arriving-first.ts";
import { describeEvents, isInQueue } from "./find-letters.ts";

export interface Replay {
  eventId: string;
  /**
   * `applied`: it is in the log. `dead`: it failed again. `waiting`: it is still in the queue. `invalid`: it was not
   * replayed, since no worker can read it. `resolved`: it was closed already.
   */
  result: "applied" | "dead" | "waiting" | "invalid" | "resolved";
  detail: string;
}

/** The worker's resolution of a replay that it has applied begins with this. The outcome follows. */
const appliedPrefix = "replayed: ";
const waitMs = 30_000;
const pollIntervalMs = 200;

/**
 * Puts the letters' events back into the queue, those of guests who arrive soon first, and waits for the results.
 *
 * @throws OperationFailure if Redis or PostgreSQL is unavailable. Letters that were not replayed are unchanged. A second
 *   replay of all letters is safe
 */
export async function replayDeadLetters(
  context: ActingContext,
  letters: DeadLetter[],
  options: {
    isAwaited: boolean;
    /** Called for each letter, once it is replayed or found not to need it. */
    count?: (replay: Replay) => void;
    /** Ends the work. What was replayed until then stays so. */
    signal?: AbortSignal | undefined;
  },
): Promise<Replay[]> {
  const action = { command: "dead-letters replay", arguments: describeEvents(letters) };
  return recordAction(context, action, (record) =>
    withDatabase(context, (pool) =>
      withProducer(context, "Nothing was replayed.", async (producer) => {
        await requireSameDatabase(context, pool);
        const did = { replayed: 0 };
        record.did = did;
        const replays: Replay[] = [];
        try {
          for (const { eventId } of arrivingFirst(letters, context.now())) {
            stopIfCancelled(options.signal);
            const replay = await replayOne(pool, producer, eventId, context.by);
            replays.push(replay);
            if (replay.result === "waiting") did.replayed += 1;
            options.count?.(replay);
          }
          if (!options.isAwaited) return replays;
          if (did.replayed > 0) context.notify(waitsNow);
          const results = await waitForResults(pool, replays, options.signal);
          record.did = { ...did, applied: count(results, "applied"), dead: count(results, "dead") };
          return results;
        } catch (error) {
          if (error instanceof EnqueueError) throw new OperationFailure(redisIsOut, { cause: error });
          throw error;
        }
      }),
    ),
  );
}

function count(replays: Replay[], wanted: Replay["result"]): number {
  return replays.filter(({ result }) => result === wanted).length;
}

const waitsNow = `Back in the queue. Waiting up to ${waitMs / 1_000} s for the outcome.`;
const redisIsOut =
  "Redis did not take all of the events. Check that it runs, and replay again. No event is applied twice.";

async function replayOne(client: Queryable, producer: ShardedProducer, eventId: string, by: string): Promise<Replay> {
  // Read before the letter: if another operator's replay applies the event, the letter says so by then.
  const outcome = (await findProcessed(client, [eventId])).get(eventId);
  const letter = await findDeadLetter(client, eventId);
  if (letter === undefined || letter.resolvedAt !== null) return resolved(eventId, letter?.resolution ?? "deleted");
  // The failed delivery was repeated, because its worker died, and succeeded.
  if (outcome !== undefined && !isInQueue(letter)) {
    const resolution = `applied meanwhile: ${outcome}`;
    await resolveDeadLetter(client, { eventId, resolvedBy: by, resolution });
    return resolved(eventId, resolution);
  }
  const text = letter.envelope.toString();
  const parsed = parseEnvelopeText(text);
  if (!parsed.success) return { eventId, result: "invalid", detail: parsed.problem };
  // Before the event is queued: the worker that applies it must find a marked letter.
  if (!(await markReplayed(client, eventId, by))) return resolved(eventId, "closed meanwhile");
  await producer.requeue({ eventId, text, envelope: parsed.envelope });
  return { eventId, result: "waiting", detail: "in the queue" };
}

function resolved(eventId: string, detail: string): Replay {
  return { eventId, result: "resolved", detail };
}

async function waitForResults(
  client: Queryable,
  replays: Replay[],
  signal: AbortSignal | undefined,
): Promise<Replay[]> {
  const giveUpAtMs = Date.now() + waitMs;
  for (;;) {
    const eventIds = replays.filter(({ result }) => result === "waiting").map(({ eventId }) => eventId);
    if (eventIds.length === 0 || Date.now() > giveUpAtMs || signal?.aborted) return replays;
    await sleep(pollIntervalMs);
    const letters = await listDeadLetters(client, { eventIds, includeResolved: true });
    const results = new Map(letters.map((letter) => [letter.eventId, readResult(letter)]));
    replays = replays.map((replay) => results.get(replay.eventId) ?? replay);
  }
}

function readResult(letter: DeadLetter): Replay | undefined {
  const { eventId, resolution, errorCode, error } = letter;
  if (resolution?.startsWith(appliedPrefix)) {
    return { eventId, result: "applied", detail: resolution.slice(appliedPrefix.length) };
  }
  // Another operator has discarded it.
  if (resolution !== null) return resolved(eventId, resolution);
  return isInQueue(letter) ? undefined : { eventId, result: "dead", detail: `${errorCode}: ${error}` };
}

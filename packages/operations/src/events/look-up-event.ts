import { findQueuedEvent, type QueuedEvent, readQueueRecord } from "@booking-events/queue";
import { bookingReferenceOf, referenceKindOf } from "@booking-events/schema";
import {
  bookingKey,
  type DeadLetter,
  type EventDetails,
  findBookings,
  findChangedFields,
  findDeadLetter,
  findEvent,
  findRecordedEvent,
  type Queryable,
  type RecordedEvent,
} from "@booking-events/store";
import { type StoryEvent, tellStory } from "../bookings/tell-story.ts";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";
import { knowsRedis, withRedis } from "../services/queue.ts";

/** An event, wherever it is, without its content. */
export interface LookedUpEvent {
  story: StoryEvent;
  partner: string | null;
  reference: string | null;
  /** The names of the fields that it has sent. Null: it is gone, or can't be read. */
  sentFields: string[] | null;
  deadLetter: DeadLetter | null;
  queued: QueuedEvent | null;
  /** What its partner is told, except for an event in the queue. */
  recorded: RecordedEvent | null;
}

/**
 * Looks for an event in the queue, the log and the dead letters. The queue is read first, since an event leaves it only
 * after the database has it.
 *
 * @returns found: undefined: it is in none of them; queueProblem: why the queue was not looked at; null: it was
 */
export async function lookUpEvent(
  context: Context,
  id: string,
): Promise<{ found: LookedUpEvent | undefined; queueProblem: string | null }> {
  const { problem, ...inQueue } = await lookIntoQueue(context, id);
  return { found: await findStored(context, id, inQueue), queueProblem: problem };
}

interface InQueue {
  queued: QueuedEvent | undefined;
  isPaused: boolean;
}

/** What Redis does not tell must not hide what PostgreSQL does. */
async function lookIntoQueue(context: Context, id: string): Promise<InQueue & { problem: string | null }> {
  const nothing = { queued: undefined, isPaused: false };
  if (!knowsRedis(context.environment)) return { ...nothing, problem: "REDIS_URL is not set" };
  try {
    const event = await withRedis(context, (queue) => findQueuedEvent(queue, id));
    if (event === undefined || (event.envelope?.test ?? false) !== (context.isTest ?? false))
      return { ...nothing, problem: null };
    const { isPaused } = await withRedis(context, readQueueRecord);
    return { queued: event, isPaused, problem: null };
  } catch (error) {
    if (error instanceof OperationFailure) return { ...nothing, problem: error.message };
    throw error;
  }
}

function findStored(context: Context, id: string, { queued, isPaused }: InQueue): Promise<LookedUpEvent | undefined> {
  return readDatabase(context, async (client) => {
    const found = await findEvent(client, id);
    const deadLetter = withoutEnvelope(await findDeadLetter(client, id));
    const [story] = tellStory({
      applied: found === undefined ? [] : [found],
      changes: found === undefined ? new Map() : await findChanges(client, found),
      queued: queued === undefined ? [] : [queued],
      isPaused,
      letters: deadLetter === null ? [] : [deadLetter],
    });
    if (story === undefined) return undefined;
    const envelope = queued?.envelope ?? null;
    const ofQueue = envelope === null ? null : bookingReferenceOf(envelope.payload);
    const partner = found?.partner ?? envelope?.partner ?? deadLetter?.partner ?? null;
    return {
      story: { ...story, referenceKind: story.referenceKind ?? (envelope && referenceKindOf(envelope.payload)) },
      partner,
      reference: found?.reference ?? ofQueue ?? deadLetter?.reference ?? null,
      sentFields: namesOf(found?.payload ?? envelope?.payload),
      deadLetter,
      queued: queued ?? null,
      recorded: partner === null ? null : ((await findRecordedEvent(client, partner, id)) ?? null),
    };
  });
}

function withoutEnvelope(letter: Awaited<ReturnType<typeof findDeadLetter>>): DeadLetter | null {
  if (letter === undefined) return null;
  const { envelope: _guestsData, ...rest } = letter;
  return rest;
}

async function findChanges(client: Queryable, event: EventDetails) {
  const key = bookingKey(event.partner, event.referenceKind, event.reference);
  // What an erased booking held is gone.
  const [booking] = await findBookings(client, [key]);
  if (booking === undefined) return new Map();
  return findChangedFields(client, key, { ids: [event.id], withValues: false });
}

function namesOf(payload: unknown): string[] | null {
  return typeof payload === "object" && payload !== null ? Object.keys(payload).sort() : null;
}

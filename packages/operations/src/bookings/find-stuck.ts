import { listQueuedEvents, type QueuedEvent } from "@booking-events/queue";
import { bookingReferenceOf, type ReferenceKind, referenceKindOf } from "@booking-events/schema";
import { type DeadLetter, listDeadLetters } from "@booking-events/store";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { withRedis } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import { type StoryEvent, tellStory } from "./tell-story.ts";

/** An event that was accepted and is not applied. */
export interface StuckEvent extends Pick<StoryEvent, "id" | "kind" | "status" | "receivedAt" | "why"> {
  /** Null: the event can't be read. */
  partner: string | null;
  referenceKind: ReferenceKind | null;
  reference: string | null;
  /** When it is tried again; null: as soon as a worker is free, or, if it is dead, when it is replayed. */
  nextAttemptAt: Date | null;
  failedAttempts: number;
}

export interface StuckEvents {
  /** The oldest first. */
  events: StuckEvent[];
  /** How many events are in the queue, and how many of them were looked at. */
  total: number;
  looked: number;
}

/**
 * Finds the events that wait, are delayed or held, and those that are dead letters, the oldest first.
 *
 * The queue is read before the dead letters: an event that becomes one meanwhile is found in one of them, or in both.
 */
export async function findStuck(
  context: Context,
  { partner, limit }: { partner: string | undefined; limit: number },
): Promise<StuckEvents> {
  return withDatabase(context, async (pool) => {
    await requireSameDatabase(context, pool);
    const queue = await withRedis(context, (settings) => listQueuedEvents({ ...settings, partner, limit }));
    const letters = await listDeadLetters(pool, { partner, limit });
    const queued = new Map(queue.events.map((event) => [event.eventId, event]));
    const letterOf = new Map(letters.map((letter) => [letter.eventId, letter]));
    const story = tellStory({ applied: [], changes: new Map(), queued: queue.events, letters });
    const events = story.slice(0, limit).map((event) => toStuck(event, queued.get(event.id), letterOf.get(event.id)));
    return { events, total: queue.total, looked: queue.looked };
  });
}

function toStuck(
  { id, kind, status, receivedAt, why }: StoryEvent,
  queued: QueuedEvent | undefined,
  letter: DeadLetter | undefined,
): StuckEvent {
  const envelope = queued?.envelope ?? null;
  return {
    id,
    kind,
    status,
    receivedAt,
    why,
    partner: envelope?.partner ?? letter?.partner ?? null,
    referenceKind: envelope === null ? (letter?.referenceKind ?? null) : referenceKindOf(envelope.payload),
    reference: envelope === null ? (letter?.reference ?? null) : bookingReferenceOf(envelope.payload),
    nextAttemptAt: queued?.nextAttemptAt ?? null,
    failedAttempts: queued?.failedAttempts ?? letter?.attempts ?? 0,
  };
}

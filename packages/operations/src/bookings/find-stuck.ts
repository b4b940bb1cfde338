import { listQueuedEvents, type QueuedEvent } from "@booking-events/queue";
import { bookingReferenceOf, type ReferenceKind, referenceKindOf } from "@booking-events/schema";
import { type DeadLetter, listDeadLetters, type Queryable } from "@booking-events/store";
import type { Context } from "../context.ts";
import { withDatabase } from "../services/database.ts";
import { withRedis } from "../services/queue.ts";
import { requireSameDatabase } from "../services/require-same-database.ts";
import { type QueuedStory, type StoryEvent, tellStory } from "./tell-story.ts";

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
  /** Of dead letters, for the next page: the event after whose letter it begins. Null: there is none. */
  nextAfter: string | null;
}

/** Why an event is stuck. */
export interface StuckCause {
  status: Exclude<StoryEvent["status"], "applied">;
  /** With which the last attempt failed. Undefined: whatever it was. */
  code?: string | undefined;
}

interface StuckFilter {
  partner: string | undefined;
  /** Undefined: any. */
  cause?: StuckCause | undefined;
  limit: number;
  /** The id of an event: only dead letters after its letter. */
  after?: string | undefined;
  /** Of events in each list of the queue. Undefined: 100,000. */
  maxLooked?: number | undefined;
}

/**
 * Finds the events that wait, are delayed or held, and those that are dead letters, the oldest first.
 *
 * The queue is read before the dead letters: an event that becomes one meanwhile is found in one of them, or in both.
 */
export async function findStuck(context: Context, filter: StuckFilter): Promise<StuckEvents> {
  return withDatabase(context, async (pool) => {
    const { isPaused } = await requireSameDatabase(context, pool);
    const queue = await findInQueue(context, filter);
    const letters = await findDead(pool, filter);
    const queued = new Map(queue.events.map((event) => [event.eventId, event]));
    const letterOf = new Map(letters.map((letter) => [letter.eventId, letter]));
    const story = tellStory({ applied: [], changes: new Map(), queued: queue.events, isPaused, letters });
    const events = story
      .slice(0, filter.limit)
      .map((event) => toStuck(event, queued.get(event.id), letterOf.get(event.id)));
    // They come in the order in which they failed, and events in that in which they were received.
    const isCut = filter.cause?.status === "dead" && letters.length === filter.limit;
    const nextAfter = isCut ? (letters.at(-1)?.eventId ?? null) : null;
    return { events, total: queue.total, looked: queue.looked, nextAfter };
  });
}

async function findInQueue(context: Context, { partner, cause, limit, maxLooked }: StuckFilter) {
  const state = cause?.status;
  if (state === "dead") return { events: [], total: 0, looked: 0 };
  const code = cause?.code;
  const wanted = { isTest: context.isTest, partner, state, code, limit, maxLooked };
  return withRedis(context, (settings) => listQueuedEvents({ ...settings, ...wanted }, toPlaced));
}

type Placed = QueuedStory & Named;
type Named = Pick<StuckEvent, "partner" | "referenceKind" | "reference">;

/** Without what was sent: of all events that are looked at, that is more than there is memory for. */
function toPlaced({ envelope, ...event }: QueuedEvent): Placed[] {
  if (envelope === null) return [{ ...event, envelope, partner: null, referenceKind: null, reference: null }];
  const { kind, sequence, receivedAt, partner, payload } = envelope;
  const named = { partner, referenceKind: referenceKindOf(payload), reference: bookingReferenceOf(payload) };
  return [{ ...event, envelope: { kind, sequence, receivedAt }, ...named }];
}

async function findDead(pool: Queryable, { partner, cause, limit, after }: StuckFilter): Promise<DeadLetter[]> {
  if (cause !== undefined && cause.status !== "dead") return [];
  return listDeadLetters(pool, { partner, errorCode: cause?.code, limit, after });
}

function toStuck(
  { id, kind, status, receivedAt, why }: StoryEvent,
  queued: Placed | undefined,
  letter: DeadLetter | undefined,
): StuckEvent {
  const named: Named | undefined = queued?.envelope ? queued : letter;
  return {
    id,
    kind,
    status,
    receivedAt,
    why,
    partner: named?.partner ?? null,
    referenceKind: named?.referenceKind ?? null,
    reference: named?.reference ?? null,
    nextAttemptAt: queued?.nextAttemptAt ?? null,
    failedAttempts: queued?.failedAttempts ?? letter?.attempts ?? 0,
  };
}

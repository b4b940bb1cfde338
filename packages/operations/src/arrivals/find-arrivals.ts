import { listQueuedEvents, type QueuedEvent } from "@booking-events/queue";
import {
  type Arrival,
  type ArrivalCounts,
  type ArrivalWindow,
  fieldsToReach,
  findWaitingArrivals,
  listArrivals,
  nameArrival,
  toWaitingWord,
  type WaitingWord,
  waitsLong,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";
import { requireKnown } from "../services/partners-file.ts";
import { knowsRedis, withRedis } from "../services/queue.ts";

/** A guest who arrives soon, and what is known. */
export interface ArrivingGuest extends Omit<Arrival, "isArriving" | "lastSequence"> {
  /** The newest event that the partner has sent is applied. */
  isApplied: boolean;
  /** When it was received. */
  lastWordAt: Date | null;
  /** Newer events than those that are applied, which wait in the queue. */
  waiting: WaitingEvent[];
  /** Somebody has to look: a dead letter, an event that has waited for over a minute, or a contact that can't be read. */
  isUnresolved: boolean;
}

type WaitingEvent = Pick<QueuedEvent, "eventId" | "kind" | "state" | "nextAttemptAt" | "lastFailure">;

export interface Arrivals {
  until: Date;
  /** Of all, not only of those that are listed. */
  counts: ArrivalCounts & {
    /** Bookings with an event that has waited for over a minute. */
    waiting: number;
  };
  /** The unresolved ones first, and then by arrival. */
  guests: ArrivingGuest[];
  /** There are more. */
  isCut: boolean;
  /** Why the queue was not looked at. Null: it was. */
  queueProblem: string | null;
}

interface ArrivalFilter {
  withinMs: number;
  partner?: string | undefined;
  limit: number;
}

/** Of each list of the queue. Those that have waited longest. */
const maxQueued = 500;

/**
 * Finds the guests who arrive soon, and whether the partner's last word on each is applied. The queue is read before
 * PostgreSQL: an event leaves it only after PostgreSQL has it.
 */
export async function findArrivals(context: Context, { withinMs, partner, limit }: ArrivalFilter): Promise<Arrivals> {
  const now = context.now();
  const window: ArrivalWindow = { now, until: new Date(now.getTime() + withinMs), partner };
  const queue = await readQueue(context, partner);
  const [{ counts, arrivals: listed }, waiting] = await readDatabase(context, async (client) => [
    await listArrivals(client, window, limit + 1),
    await findWaitingArrivals(client, window, queue.words),
  ]);
  const ofQueue = new Map(waiting.map((found) => [nameArrival(found.arrival), found]));
  const known = new Map(listed.map((arrival) => [nameArrival(arrival), arrival]));
  const all = new Map([...waiting.map(({ arrival }) => [nameArrival(arrival), arrival] as const), ...known]);
  const guests = [...all].map(([name, arrival]) => toGuest(arrival, ofQueue.get(name)?.words ?? [], now));
  requireKnown(context, partner, guests);
  const long = waiting.filter(({ words }) => words.some((word) => waitsLong(word, now)));
  const added = long.filter(({ arrival, isCounted }) => !isCounted || !hasFault(arrival)).length;
  const unknown = waiting.filter(({ isCounted }) => !isCounted).length;
  return {
    until: window.until,
    counts: {
      ...counts,
      arriving: counts.arriving + unknown,
      waiting: long.length,
      unresolved: counts.unresolved + added,
    },
    guests: guests.toSorted(compareByUrgency).slice(0, limit),
    isCut: guests.length > limit,
    queueProblem: queue.problem,
  };
}

type Word = WaitingWord & { event: WaitingEvent };

async function readQueue(
  context: Context,
  partner: string | undefined,
): Promise<{ words: Word[]; problem: string | null }> {
  if (!knowsRedis(context.environment)) return { words: [], problem: "REDIS_URL is not set" };
  try {
    const { events } = await withRedis(context, (settings) =>
      listQueuedEvents({ ...settings, isTest: context.isTest, partner, limit: maxQueued }, toWord),
    );
    return { words: events, problem: null };
  } catch (error) {
    if (error instanceof OperationFailure) return { words: [], problem: error.message };
    throw error;
  }
}

/** What no release can read names no booking. */
function toWord({ envelope, eventId, kind, state, nextAttemptAt, lastFailure }: QueuedEvent): Word[] {
  const event = { eventId, kind, state, nextAttemptAt, lastFailure };
  return envelope === null ? [] : [{ event, ...toWaitingWord(envelope) }];
}

function toGuest({ isArriving: _, lastSequence, ...arrival }: Arrival, words: Word[], now: Date): ArrivingGuest {
  const sequences = [...arrival.letters, ...words].map(({ sequence }) => sequence);
  const newest = Math.max(lastSequence ?? 0, ...sequences);
  return {
    ...arrival,
    isApplied: sequences.length === 0,
    lastWordAt: newest === 0 ? null : new Date(Math.floor(newest / 1_000)),
    waiting: words.map(({ event }) => event),
    isUnresolved: hasFault(arrival) || words.some((word) => waitsLong(word, now)),
  };
}

function compareByUrgency(one: ArrivingGuest, other: ArrivingGuest): number {
  const difference = Number(other.isUnresolved) - Number(one.isUnresolved);
  if (difference !== 0) return difference;
  const [place, otherPlace] = [placeOf(one), placeOf(other)];
  if (place === otherPlace) return 0;
  return place < otherPlace ? -1 : 1;
}

/** Sorts a day alone behind the moments of that day, and a guest without either last. */
function placeOf({ arrivalDay, arrivalAt }: ArrivingGuest): string {
  return `${arrivalDay ?? "~"} ${arrivalAt?.toISOString() ?? "~"}`;
}

function hasFault({ letters, unreadable }: Pick<Arrival, "letters" | "unreadable">): boolean {
  return letters.length > 0 || fieldsToReach.some((field) => unreadable.includes(field));
}

import { type ReferenceKind, referenceKindOf } from "@booking-events/schema";
import {
  type BookingDetails,
  type DeadLetter,
  findBookings,
  listBookingEvents,
  listDeadLetters,
  type Queryable,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase } from "../services/database.ts";
import { keysOf } from "./booking-keys.ts";
import { type QueueView, searchQueue } from "./search-queue.ts";
import { type StoryEvent, tellStory } from "./tell-story.ts";

/** More dead letters of one booking say nothing new. */
const maxLetters = 1_000;

interface StoryOptions {
  partner: string;
  reference: string;
  /** Undefined: either. */
  referenceKind?: ReferenceKind | undefined;
  /** How many of the newest applied events. */
  limit: number;
  /** The id of an event: only applied events before it. */
  before?: string | undefined;
}

export interface Story {
  partner: string;
  reference: string;
  referenceKind: ReferenceKind | null;
  /** Undefined: no event of the booking has been applied. */
  booking: BookingDetails | undefined;
  events: StoryEvent[];
  earlier: number;
  queue: QueueView | undefined;
}

/** The queue is read before the log. An event that is applied meanwhile is found in one of them, or in both. */
export async function findStory(context: Context, options: StoryOptions): Promise<Story> {
  const { partner, reference, referenceKind: wantedKind } = options;
  const wanted = { partner, reference, referenceKind: wantedKind };
  // Earlier events than the newest ones have been applied long ago.
  const isFirstPage = options.before === undefined;
  const queue = isFirstPage ? await searchQueue(context, wanted) : undefined;
  const { booking, log, letters } = await readDatabase(context, (client) => readStory(client, wanted, options));
  const queued = queue?.events ?? [];
  const kinds = new Set([
    booking?.referenceKind,
    ...queued.map(kindOf),
    ...letters.map((letter) => letter.referenceKind),
  ]);
  const [referenceKind = null, another] = [...kinds].filter((kind) => kind !== undefined && kind !== null);
  if (another !== undefined) throw ambiguous(partner, reference);
  const events = tellStory({ applied: log.events, queued, letters: isFirstPage ? letters : [] });
  if (booking === undefined && events.length === 0) throw unknownBooking(partner, reference, queue);
  return { partner, reference, referenceKind, booking, events, earlier: log.earlier, queue };
}

function kindOf({ envelope }: QueueView["events"][number]): ReferenceKind | null {
  return envelope === null ? null : referenceKindOf(envelope.payload);
}

interface Wanted {
  partner: string;
  reference: string;
  referenceKind: ReferenceKind | undefined;
}

async function readStory(
  client: Queryable,
  { partner, reference, referenceKind }: Wanted,
  { limit, before }: StoryOptions,
) {
  const [found, another] = await findBookings(client, keysOf(partner, reference, referenceKind));
  if (another !== undefined) throw ambiguous(partner, reference);
  const filter = { partner, reference, includeResolved: true, limit: maxLetters };
  const letters = (await listDeadLetters(client, filter)).filter(isOfKind(referenceKind));
  if (found === undefined) return { booking: undefined, log: { events: [], earlier: 0 }, letters };
  const { bookingKey, ...booking } = found;
  return { booking, log: await listBookingEvents(client, bookingKey, { limit, before }), letters };
}

function isOfKind(wanted: ReferenceKind | undefined): (letter: DeadLetter) => boolean {
  return ({ referenceKind }) => wanted === undefined || referenceKind === wanted;
}

function ambiguous(partner: string, reference: string): OperationFailure {
  return new OperationFailure(
    `Partner ${partner} has two bookings ${reference}: one of a trip and one of a consumer. ` +
      "Choose one with --reference-kind trip or --reference-kind consumer.",
  );
}

function unknownBooking(partner: string, reference: string, queue: QueueView | undefined): OperationFailure {
  const unseen = queue?.problem ? ` Events in the queue were not looked at: ${queue.problem}.` : "";
  return new OperationFailure(
    `Partner ${partner} has no booking ${reference}.${unseen} See what the partner has sent: ` +
      `ops events list --partner ${partner}`,
  );
}

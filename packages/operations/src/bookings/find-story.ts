import { type ReferenceKind, referenceKindOf } from "@booking-events/schema";
import {
  type BookingDetails,
  type DeadLetter,
  eraseIdentity,
  findBookingAt,
  findBookings,
  findChangedFields,
  findErasedKeys,
  findErasure,
  listBookingEvents,
  listDeadLetters,
  type Queryable,
} from "@booking-events/store";
import type { Context } from "../context.ts";
import { OperationFailure } from "../operation-failure.ts";
import { readDatabase, readPrepared } from "../services/database.ts";
import { readKey } from "../services/digest-key.ts";
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
  /** The booking as it was at this time of receipt. Undefined: now. */
  at?: Date | undefined;
  /** Also finds the values of the fields that events have changed. They may be personal data. */
  withValues?: boolean;
  /** How many events of the queue are looked at. Undefined: a million. */
  maxLooked?: number | undefined;
}

export interface Story {
  partner: string;
  reference: string;
  referenceKind: ReferenceKind | null;
  /** By what the database knows it. Null: no event of the booking has been applied. */
  stored: { bookingKey: Buffer; bookingId: string } | null;
  /** Undefined: no event of the booking has been applied. */
  booking: BookingDetails | undefined;
  /** The booking was erased, and all that is left of it are its events, without content. */
  erased: { at: Date; by: string | null } | null;
  events: StoryEvent[];
  earlier: number;
  queue: QueueView | undefined;
}

/** The queue is read before the log. An event that is applied meanwhile is found in one of them, or in both. */
export async function findStory(context: Context, options: StoryOptions): Promise<Story> {
  const { partner, reference, referenceKind: wantedKind } = options;
  const wanted = { partner, reference, referenceKind: wantedKind };
  // Earlier events than the newest ones have been applied long ago.
  const isFirstPage = options.before === undefined && options.at === undefined;
  const queue = isFirstPage ? await searchQueue(context, { ...wanted, maxLooked: options.maxLooked }) : undefined;
  const read = (keys: Buffer[]) => readPrepared(context, (client) => readStory(client, { ...wanted, keys }, options));
  let found = await read(keysOf(partner, reference, wantedKind));
  if (found.stored === null) found = await read(await erasedKeysOf(context, wanted));
  const { booking, erased, log, letters, stored } = found;
  const queued = queue?.events ?? [];
  const kinds = new Set([found.referenceKind, ...queued.map(kindOf), ...letters.map((letter) => letter.referenceKind)]);
  const [referenceKind = null, another] = [...kinds].filter((kind) => kind !== undefined && kind !== null);
  if (another !== undefined) throw ambiguous(partner, reference);
  const events = tellStory({
    applied: log.events,
    changes: log.changes,
    queued,
    isPaused: queue?.isPaused ?? false,
    letters: isFirstPage ? letters : [],
  });
  if (stored === null && events.length === 0) throw unknownBooking(partner, reference, queue);
  return { partner, reference, referenceKind, stored, booking, erased, events, earlier: log.earlier, queue };
}

function kindOf({ envelope }: QueueView["events"][number]): ReferenceKind | null {
  return envelope === null ? null : referenceKindOf(envelope.payload);
}

interface Wanted {
  partner: string;
  reference: string;
  referenceKind: ReferenceKind | undefined;
}

/** @returns the keys of erased bookings that had this reference before, as far as the key of digests is known, or have it */
async function erasedKeysOf(context: Context, { partner, reference, referenceKind }: Wanted): Promise<Buffer[]> {
  const found = await readDatabase(context, (client) => findErasedKeys(client, { partner, reference }));
  if (found.length > 0) return found;
  try {
    const key = await readDatabase(context, (client) => readKey(context, client));
    return keysOf(partner, reference, referenceKind).map((plain) => eraseIdentity(key, plain).bookingKey);
  } catch (error) {
    if (!(error instanceof OperationFailure)) throw error;
    context.notify(`Whether the booking was erased is not known. ${error.message}`);
    return [];
  }
}

async function readStory(
  client: Queryable,
  { partner, reference, referenceKind, keys }: Wanted & { keys: Buffer[] },
  { limit, before, at, withValues = false }: StoryOptions,
) {
  const [found, another] = await findBookings(client, keys);
  if (another !== undefined) throw ambiguous(partner, reference);
  const filter = { partner, reference, includeResolved: true, limit: maxLetters };
  const letters = (await listDeadLetters(client, filter)).filter(isOfKind(referenceKind));
  const none = { stored: null, booking: undefined, erased: null, referenceKind: undefined };
  if (found === undefined) return { ...none, log: { events: [], earlier: 0, changes: new Map() }, letters };
  const { bookingKey, bookingId, erasedAt, ...booking } = found;
  const { events, earlier } = await listBookingEvents(client, bookingKey, { limit, before, until: at });
  const changes = await findChangedFields(client, bookingKey, { ids: events.map(({ id }) => id), withValues });
  return {
    stored: { bookingKey, bookingId },
    booking: at === undefined ? booking : await findBookingAt(client, bookingKey, at),
    erased: erasedAt === null ? null : { at: erasedAt, by: (await findErasure(client, bookingKey))?.by ?? null },
    referenceKind: booking.referenceKind,
    log: { events, earlier, changes },
    letters,
  };
}

function isOfKind(wanted: ReferenceKind | undefined): (letter: DeadLetter) => boolean {
  return ({ referenceKind }) => wanted === undefined || referenceKind === wanted;
}

/** A trip and a consumer of the partner have the same reference. */
export class TwoBookings extends OperationFailure {
  override name = "TwoBookings";
}

export class UnknownBooking extends OperationFailure {
  override name = "UnknownBooking";
}

function ambiguous(partner: string, reference: string): OperationFailure {
  return new TwoBookings(
    `Partner ${partner} has two bookings ${reference}: one of a trip and one of a consumer. ` +
      "Choose one with --reference-kind trip or --reference-kind consumer.",
  );
}

function unknownBooking(partner: string, reference: string, queue: QueueView | undefined): OperationFailure {
  const unseen = queue?.problem ? ` Events in the queue were not looked at: ${queue.problem}.` : "";
  return new UnknownBooking(
    `Partner ${partner} has no booking ${reference}.${unseen} See what the partner has sent: ` +
      `ops events list --partner ${partner}`,
  );
}

import type { ReferenceKind } from "@booking-events/schema";
import {
  type BookingChange,
  type BookingDelivery,
  type BookingPoint,
  compareFields,
  type FieldAtPoint,
  findBookingPoint,
  listBookingChanges,
  listBookingDeliveries,
  type PointInTime,
  type Queryable,
  settleAll,
} from "@booking-events/store";
import { type ActingContext, recordAction } from "../actions/record-action.ts";
import type { Context } from "../context.ts";
import { readPrepared } from "../services/database.ts";
import { tripFields } from "./describe-trip.ts";
import { findStory, type Story } from "./find-story.ts";
import type { Verification } from "./verify-booking.ts";
import { verifyAll } from "./verify-bookings.ts";

interface ProofOptions {
  partner: string;
  reference: string;
  /** Undefined: either. */
  referenceKind: ReferenceKind | undefined;
  /** How many of the newest applied events. */
  limit: number;
  /** The id of an event: only applied events before it. */
  before: string | undefined;
  /** Of which the state is wanted. Undefined: now. */
  point: PointInTime | undefined;
  /** Looks at the whole queue, and recomputes the booking from however many events. */
  isThorough: boolean;
}

/** A booking with all that shows whether it is right. */
export interface Proof {
  story: Story;
  /** Null: no event has been applied, or none that the log still has by then. */
  point: (BookingPoint & { fields: FieldAtPoint[] }) | null;
  /** Null: the booking has been erased, has too many events to recompute it at once, or nothing has been applied. */
  verification: Verification | null;
  /** Of the feed, the newest first. */
  changes: BookingChange[];
  /** Of each reader of the feed. */
  deliveries: BookingDelivery[];
}

/** Some milliseconds of Redis' time. */
const eventsLookedAt = 20_000;
/** Some milliseconds of PostgreSQL's time. */
const maxVerified = 300;
const maxChanges = 50;
const maxReaders = 100;

/**
 * Finds a booking's story, its state at a point of its history, and who has been told; and recomputes it from the log.
 * Values are found of the fields about the trip alone.
 *
 * @throws UnknownBooking, TwoBookings
 */
export function proveBooking(context: Context, options: ProofOptions): Promise<Proof> {
  return prove(context, options, false);
}

/** Why values of guests are looked at. A text of the operator's might name a guest, and the record is kept. */
export const revealReasons = ["guest-request", "partner-question", "wrong-data", "incident", "legal"] as const;
export type RevealReason = (typeof revealReasons)[number];

/** Of a ticket, such as `OPS-1234`. */
export const ticketPattern = /^[A-Za-z0-9#/_-]{1,40}$/;

/**
 * Does the same with all values, once it is recorded who looks at which booking, and why. What is refused because there is no
 * such booking is not recorded: the sentence names the reference, which may be a guest's name.
 */
export async function revealBooking(
  context: ActingContext,
  options: ProofOptions,
  why: { reason: RevealReason; ticket: string | undefined },
): Promise<Proof> {
  const { partner, reference, referenceKind } = options;
  const { stored } = await findStory(context, {
    partner,
    reference,
    referenceKind,
    limit: 1,
    maxLooked: eventsLookedAt,
  });
  const given = { partner, bookingId: stored?.bookingId, ...why };
  const action = { command: "bookings reveal", arguments: given, mustBeRecorded: true };
  return recordAction(context, action, () => prove(context, options, true));
}

async function prove(context: Context, options: ProofOptions, withValues: boolean): Promise<Proof> {
  const { partner, reference, limit, before, isThorough, point: wanted } = options;
  const maxLooked = isThorough ? undefined : eventsLookedAt;
  const named = { partner, reference, referenceKind: options.referenceKind };
  const story = await findStory(context, { ...named, limit, before, withValues, maxLooked });
  const { stored, erased, referenceKind } = story;
  if (stored === null) return { story, point: null, verification: null, changes: [], deliveries: [] };
  const reading = readPrepared(context, async (client) => ({
    point: await readPoint(client, stored.bookingKey, wanted ?? { at: farFuture }, withValues ? "all" : tripFields),
    changes: await listBookingChanges(client, stored.bookingId, maxChanges),
    deliveries: await listBookingDeliveries(client, { bookingId: stored.bookingId, partner }, maxReaders),
  }));
  const isShort = isThorough || story.earlier + story.events.length <= maxVerified;
  const verifying =
    erased === null && isShort && referenceKind !== null
      ? verify(context, story, referenceKind)
      : Promise.resolve(null);
  const [told, verification] = await settleAll([reading, verifying]);
  return { story, verification, ...told };
}

const farFuture = new Date(8.64e15 / 1_000);

async function readPoint(
  client: Queryable,
  bookingKey: Buffer,
  wanted: PointInTime,
  values: "all" | readonly string[],
): Promise<Proof["point"]> {
  const point = await findBookingPoint(client, bookingKey, wanted);
  return point === undefined ? null : { ...point, fields: await compareFields(client, bookingKey, point, values) };
}

async function verify(
  context: Context,
  { partner, reference }: Story,
  referenceKind: ReferenceKind,
): Promise<Verification | null> {
  for await (const verification of verifyAll(context, { partner, reference, referenceKind })) return verification;
  return null;
}

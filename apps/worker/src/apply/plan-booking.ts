import {
  type BookingState,
  type Change,
  type FoldEvent,
  type FoldOutcome,
  foldEvents,
  type KeySettlement,
  type Outcome,
} from "@booking-events/bookings";
import type { ReferenceKind } from "@booking-events/schema";
import {
  type BookingRow,
  type BookingToSave,
  type ChangeToInsert,
  type CreatesAround,
  type RevisedEvent,
  toState,
} from "@booking-events/store";
import type { IncomingEvent } from "./incoming-event.ts";
import type { Refolding, RevisedStep } from "./refold-booking.ts";

/** What one batch brings to one booking. */
export interface TouchedBooking {
  readonly bookingKey: Buffer;
  readonly partner: string;
  readonly referenceKind: ReferenceKind;
  readonly reference: string;
  /** The booking as it stands, locked; null: there is none. */
  readonly row: BookingRow | null;
  /** Events that are not in the log, in sequence order. */
  readonly newEvents: readonly IncomingEvent[];
}

/** The same when it is known which events repeat others. */
export interface BookingWork extends TouchedBooking {
  readonly settlement: KeySettlement;
  /** The new events that count, in sequence order. */
  readonly events: readonly IncomingEvent[];
}

/** What has to be written for one booking. */
export interface BookingPlan {
  work: BookingWork;
  /** The booking afterwards. */
  booking: BookingToSave;
  changes: ChangeToInsert[];
  /** Of each new event, by its id: what is recorded of it. */
  recorded: Map<string, { outcome: Outcome; after: BookingState }>;
  /** Events in the log of which something else is recorded now. */
  revised: RevisedEvent[];
}

/** Those that are earlier than what was folded in last. */
export function lateEvents({ row, events }: BookingWork): IncomingEvent[] {
  return row === null ? [] : events.filter(({ sequence }) => sequence <= row.lastSequence);
}

/** Does an event take a place before what was folded in last? Only then can one in the log lose its place to it. */
export function needsRefolding(work: BookingWork): work is BookingWork & { row: BookingRow } {
  return lateEvents(work).length > 0;
}

/**
 * @param refolding with the late events, if the booking {@link needsRefolding}
 * @param creates of each create without an idempotency key, by its id, the creates around it; of a new booking, none
 */
export function planBooking(
  work: BookingWork,
  refolding: Refolding | undefined,
  creates: ReadonlyMap<string, CreatesAround>,
  duplicateWindowMs: number,
): BookingPlan {
  const stored = work.row === null ? null : toState(work.row);
  const plan: Omit<BookingPlan, "booking"> = { work, changes: [], recorded: new Map(), revised: [] };
  if (stored !== null && refolding !== undefined) recordRefolding(plan, stored, refolding);

  const late = new Set(lateEvents(work));
  const onTime = work.events.filter((event) => !late.has(event));
  let state = refolding === undefined ? stored : refolding.state;
  const options = { earlierCreates: findEarlierCreates(onTime, late, creates), duplicateWindowMs };
  for (const { event, outcome, after } of foldEvents(state, onTime, options)) {
    plan.recorded.set(event.id, { outcome, after });
    if (isChange(outcome)) addChange(plan, outcome, event);
    state = after;
  }
  if (state === null) throw new Error("A booking that a batch touches has an event of it.");
  return { ...plan, booking: toBooking(work, state) };
}

/**
 * After late events have taken their places: if the booking's state is the same as before, they are superseded and
 * nothing else is to say. If it is not, one change leads from the state that stood to the right one.
 */
function recordRefolding(
  plan: Omit<BookingPlan, "booking">,
  stored: BookingState,
  { state, late, revised }: Refolding,
): void {
  for (const [id, { outcome, after }] of late) {
    plan.recorded.set(id, { outcome: id === state.eventId ? outcome : "superseded", after });
  }
  plan.revised = revised.map(toRevisedEvent);
  const change = changeBetween(stored, state);
  if (change !== null) addChange(plan, change, { id: state.eventId, sequence: state.sequence });
}

export function toRevisedEvent({ event, outcome, after }: RevisedStep): RevisedEvent {
  const { id, kind, contentDigest } = event;
  return { id, kind, contentDigest: Buffer.from(contentDigest, "hex"), outcome, after };
}

/** Null: whoever follows the feed has the right state already. */
function changeBetween(before: BookingState, after: BookingState): Change | null {
  if (before.state === "deleted") return after.state === "active" ? "recreated" : null;
  if (after.state === "deleted") return "deleted";
  return before.content?.digest === after.content?.digest ? null : "updated";
}

function addChange(
  { changes, work }: Omit<BookingPlan, "booking">,
  change: Change,
  event: { id: string; sequence: number },
): void {
  const { partner, referenceKind, reference } = work;
  changes.push({ partner, referenceKind, reference, change, eventId: event.id, sequence: event.sequence });
}

/** By content, the newest create before the events that are on time: in the log, or a late one. */
function findEarlierCreates(
  onTime: IncomingEvent[],
  late: ReadonlySet<IncomingEvent>,
  creates: ReadonlyMap<string, CreatesAround>,
): Map<string, number> {
  const earlier = new Map<string, number>();
  const note = (digest: string, sequence: number) =>
    earlier.set(digest, Math.max(sequence, earlier.get(digest) ?? sequence));
  for (const { id, contentDigest } of onTime) {
    const logged = creates.get(id)?.earlier ?? null;
    if (logged !== null) note(contentDigest, logged);
  }
  for (const event of late) if (isRepeatable(event)) note(event.contentDigest, event.sequence);
  return earlier;
}

/** Only such creates make later ones repetitions. */
export function isRepeatable({ kind, hasIdempotencyKey }: Pick<FoldEvent, "kind" | "hasIdempotencyKey">): boolean {
  return kind === "create" && !hasIdempotencyKey;
}

function toBooking(
  { bookingKey, partner, referenceKind, reference, row }: BookingWork,
  state: BookingState,
): BookingToSave {
  const { content, ...rest } = state;
  return {
    bookingKey,
    partner,
    referenceKind,
    reference,
    ...rest,
    contentDigest: content === null ? null : Buffer.from(content.digest, "hex"),
    contentEventId: content?.eventId ?? null,
    contentSequence: content?.newestKeylessSequence ?? null,
    keepsPayload: row !== null && (row.contentDigest?.toString("hex") ?? null) === (content?.digest ?? null),
  };
}

function isChange(outcome: FoldOutcome): outcome is Change {
  return outcome !== "unchanged" && outcome !== "duplicate";
}

import type { CreatesAround, RevisedEvent } from "./booking-log.ts";
import {
  type BookingState,
  type Change,
  type FoldEvent,
  type FoldOutcome,
  type FoldWarning,
  foldEvents,
  type Outcome,
} from "./fold.ts";
import type { Refolding } from "./refold.ts";

export interface RecordedStep {
  outcome: Outcome;
  warning: FoldWarning | null;
  after: BookingState;
}

export interface PlannedChange {
  change: Change;
  /** The event that decided the new state. */
  eventId: string;
  sequence: number;
  /** The event that the booking's change before named; null: there was none. */
  previousEventId: string | null;
}

export interface BookingPlan {
  state: BookingState;
  /** The booking exists, and its content stays the same. */
  keepsContent: boolean;
  changes: PlannedChange[];
  /** By the new event's id. */
  recorded: Map<string, RecordedStep>;
  revised: RevisedEvent[];
}

/**
 * Decides what new events do to a booking.
 *
 * @param booking.stored the booking before; null: there is none
 * @param booking.feedEventId the event that the feed named last for the booking; null: none. It is another than that of
 *   the stored state if a late event with the same content has decided that
 * @param booking.events the new events that count, in sequence order
 * @param options.refolding of the late events, if there are any: see {@link findLateEvents}
 * @param options.creates for each {@link isRepeatable} event of a stored booking, by its id, the creates around it
 * @param options.duplicateWindowMs see {@link foldEvents}
 */
export function planBooking(
  {
    stored,
    feedEventId,
    events,
  }: { stored: BookingState | null; feedEventId: string | null; events: readonly FoldEvent[] },
  options: {
    refolding: Refolding | undefined;
    creates: ReadonlyMap<string, Pick<CreatesAround, "earlier">>;
    duplicateWindowMs: number;
  },
): BookingPlan {
  const { refolding, creates, duplicateWindowMs } = options;
  const late = findLateEvents(stored, events);
  const onTime = events.slice(late.length);
  const before = refolding?.state ?? stored;
  const steps = foldEvents(before, onTime, {
    earlierCreates: findEarlierCreates(onTime, late, creates),
    duplicateWindowMs,
  });
  const state = steps.at(-1)?.after ?? refolding?.state;
  if (state === undefined) throw new Error("A booking is planned only when it has new events.");
  return {
    state,
    keepsContent: stored !== null && hasSameContent(stored, state),
    changes: namePrevious(feedEventId, [
      ...correctionOf(stored, refolding),
      ...steps.flatMap(({ outcome, after }) => (isChange(outcome) ? [toChange(outcome, after)] : [])),
    ]),
    recorded: new Map([
      ...recordLate(refolding),
      ...steps.map(({ event, ...step }): [string, RecordedStep] => [event.id, step]),
    ]),
    revised: refolding?.revised ?? [],
  };
}

/**
 * Finds the events that take a place before the newest one in the booking's log. Only such events can change the
 * outcomes of logged events.
 *
 * @param events in sequence order
 */
export function findLateEvents<Event extends FoldEvent>(
  stored: BookingState | null,
  events: readonly Event[],
): readonly Event[] {
  return stored === null ? [] : events.filter(({ sequence }) => sequence <= stored.lastSequence);
}

/** Whether a later create with the same content can be a repetition of this event. */
export function isRepeatable({ kind, hasIdempotencyKey }: Pick<FoldEvent, "kind" | "hasIdempotencyKey">): boolean {
  return kind === "create" && !hasIdempotencyKey;
}

/** A late event is superseded, unless it decides the booking's state. */
function recordLate(refolding: Refolding | undefined): [id: string, step: RecordedStep][] {
  if (refolding === undefined) return [];
  return [...refolding.late].map(([id, { outcome, warning, after }]) => [
    id,
    { outcome: id === refolding.state.eventId ? outcome : "superseded", warning, after },
  ]);
}

/**
 * One change that leads readers of the feed from the stored state to the state with the late events, if they differ.
 */
function correctionOf(stored: BookingState | null, refolding: Refolding | undefined): NamedChange[] {
  if (stored === null || refolding === undefined) return [];
  const { state } = refolding;
  const change = changeBetween(stored, state);
  return change === null ? [] : [toChange(change, state)];
}

/** Null: the feed has already told readers all that matters to them. */
function changeBetween(before: BookingState, after: BookingState): Change | null {
  if (before.state === "deleted") return after.state === "active" ? "recreated" : null;
  if (after.state === "deleted") return "deleted";
  // An import, or another late event, can be the booking's first one.
  const isSameStart = before.createdAt.getTime() === after.createdAt.getTime();
  return hasSameContent(before, after) && isSameStart ? null : "updated";
}

function hasSameContent(one: BookingState, other: BookingState): boolean {
  return one.content?.digest === other.content?.digest;
}

type NamedChange = Omit<PlannedChange, "previousEventId">;

function toChange(change: Change, { eventId, sequence }: BookingState): NamedChange {
  return { change, eventId, sequence };
}

function namePrevious(feedEventId: string | null, changes: NamedChange[]): PlannedChange[] {
  return changes.map((change, index) => ({ ...change, previousEventId: changes[index - 1]?.eventId ?? feedEventId }));
}

/** By content, the newest repeatable create before the events that are on time: from the log, or a late one. */
function findEarlierCreates(
  onTime: readonly FoldEvent[],
  late: readonly FoldEvent[],
  creates: ReadonlyMap<string, Pick<CreatesAround, "earlier">>,
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

function isChange(outcome: FoldOutcome): outcome is Change {
  return outcome !== "unchanged" && outcome !== "duplicate";
}

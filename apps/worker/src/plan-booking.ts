import type { BookingRow, BookingToSave, Change, ChangeToInsert, LoggedEvent, Outcome } from "@booking-events/store";
import { type BookingState, type FoldEvent, type FoldStep, foldEvents } from "./fold.ts";
import type { IncomingEvent } from "./incoming-event.ts";

/** What one batch brings to one booking. */
export interface BookingWork {
  bookingKey: Buffer;
  partner: string;
  reference: string;
  /** The booking as it stands, locked; null: there is none. */
  row: BookingRow | null;
  /** New events that count, in sequence order. */
  events: IncomingEvent[];
  /** Events in the log that count no longer. */
  displacedIds: ReadonlySet<string>;
}

/** What has to be written for one booking. */
export interface BookingPlan {
  work: BookingWork;
  /** The booking afterwards; null: none of its events counts any more. */
  booking: BookingToSave | null;
  changes: ChangeToInsert[];
  /** Of the new events, by id. */
  outcomes: Map<string, Outcome>;
  /** Of events in the log whose effect has changed. */
  revisedOutcomes: Map<string, Outcome>;
}

/** Must the booking be folded anew from its log, because an event takes a place before, or leaves, what was folded? */
export function needsHistory({ row, events, displacedIds }: BookingWork): boolean {
  return row !== null && (displacedIds.size > 0 || events.some(({ sequence }) => sequence < row.lastSequence));
}

/**
 * @param history the booking's events in the log that count, in sequence order; only read if {@link needsHistory}
 * @param earlierCreates see {@link foldEvents}; only read if not
 */
export function planBooking(
  work: BookingWork,
  history: LoggedEvent[],
  earlierCreates: ReadonlyMap<string, number>,
  duplicateWindowMs: number,
): BookingPlan {
  const stored = work.row === null ? null : toState(work.row);
  const plan: BookingPlan = {
    work,
    booking: null,
    changes: [],
    outcomes: new Map(),
    revisedOutcomes: new Map(),
  };
  const lastSequence = stored?.lastSequence ?? -1;
  const onTime = work.events.filter(({ sequence }) => sequence > lastSequence);

  let state = stored;
  let creates = earlierCreates;
  const logged = history.filter(({ id }) => !work.displacedIds.has(id)).map(toFoldEvent);
  if (stored !== null && needsHistory(work)) {
    const late = work.events.filter(({ sequence }) => sequence < lastSequence);
    const past = [...logged, ...late].sort((a, b) => a.sequence - b.sequence);
    const steps = foldEvents(null, past, { earlierCreates: new Map(), duplicateWindowMs });
    state = steps.at(-1)?.after ?? null;
    creates = createsAmong(past);
    recordCorrection(plan, { stored, corrected: state, steps, history, late });
  }

  for (const { event, outcome, after } of foldEvents(state, onTime, { earlierCreates: creates, duplicateWindowMs })) {
    plan.outcomes.set(event.id, outcome);
    if (isChange(outcome)) addChange(plan, outcome, event);
    state = after;
  }
  if (state !== null) setBooking(plan, state, logged);
  return plan;
}

/**
 * After late events have taken their places: if the booking's state is the same as before, they are superseded and
 * nothing else is to say. If it is not, one change leads from the state that stood to the right one, and the outcomes
 * in the log say who decides now.
 */
function recordCorrection(
  plan: BookingPlan,
  correction: {
    stored: BookingState;
    corrected: BookingState | null;
    steps: FoldStep[];
    history: LoggedEvent[];
    late: IncomingEvent[];
  },
): void {
  const { stored, corrected, steps, history, late } = correction;
  for (const { id } of late) plan.outcomes.set(id, "superseded");
  const change = changeBetween(stored, corrected);
  if (change === null) return;

  // Of a booking without any event left there is no deciding event: the one that decided until now has left.
  const decidedBy = corrected ?? stored;
  addChange(plan, change, { id: decidedBy.eventId, sequence: decidedBy.sequence });
  const recorded = new Map(history.map(({ id, outcome }) => [id, outcome]));
  for (const { event, outcome } of steps) {
    const isDeciding = event.id === corrected?.eventId;
    const before = recorded.get(event.id);
    if (before === undefined) {
      if (isDeciding) plan.outcomes.set(event.id, outcome);
    } else if (before !== outcome && (isDeciding || before !== "superseded")) {
      plan.revisedOutcomes.set(event.id, outcome);
    }
  }
}

/** Null: whoever follows the feed has the right state already. */
function changeBetween(before: BookingState, after: BookingState | null): Change | null {
  const stateAfter = after?.state ?? "deleted";
  if (before.state === "deleted") return stateAfter === "active" ? "recreated" : null;
  if (stateAfter === "deleted") return "deleted";
  return before.content?.digest === after?.content?.digest ? null : "updated";
}

function addChange({ changes, work }: BookingPlan, change: Change, event: { id: string; sequence: number }): void {
  const { partner, reference } = work;
  changes.push({ partner, reference, change, eventId: event.id, sequence: event.sequence });
}

function setBooking(plan: BookingPlan, state: BookingState, logged: FoldEvent[]): void {
  const { bookingKey, partner, reference, row, events } = plan.work;
  const { content, ...rest } = state;
  const isStored = row !== null && (row.contentDigest?.toString("hex") ?? null) === (content?.digest ?? null);
  const hasContent = ({ kind, contentDigest }: FoldEvent) => kind !== "delete" && contentDigest === content?.digest;
  const source = events.find(hasContent) ?? logged.find(hasContent);
  plan.booking = {
    bookingKey,
    partner,
    reference,
    ...rest,
    contentDigest: content === null ? null : Buffer.from(content.digest, "hex"),
    contentSequence: content?.newestKeylessSequence ?? null,
    payloadEventId: isStored ? undefined : (source?.id ?? null),
  };
}

function toState(row: BookingRow): BookingState {
  const { state, eventId, sequence, lastSequence, createdAt, updatedAt, deletedAt } = row;
  const content =
    row.contentDigest === null
      ? null
      : { digest: row.contentDigest.toString("hex"), newestKeylessSequence: row.contentSequence };
  return { state, eventId, sequence, content, lastSequence, createdAt, updatedAt, deletedAt };
}

function toFoldEvent({ id, kind, sequence, hasIdempotencyKey, contentDigest, receivedAt }: LoggedEvent): FoldEvent {
  return { id, kind, sequence, hasIdempotencyKey, contentDigest: contentDigest.toString("hex"), receivedAt };
}

function createsAmong(events: FoldEvent[]): Map<string, number> {
  return new Map(
    events
      .filter(({ kind, hasIdempotencyKey }) => kind === "create" && !hasIdempotencyKey)
      .map(({ contentDigest, sequence }) => [contentDigest, sequence]),
  );
}

function isChange(outcome: FoldStep["outcome"]): outcome is Change {
  return outcome !== "unchanged" && outcome !== "duplicate";
}

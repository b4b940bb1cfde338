import type { EventKind } from "@booking-events/schema";

/** A change of a booking's state, as in the feed. */
export type Change = "created" | "updated" | "deleted" | "recreated";
/** What an event does in the fold. */
export type FoldOutcome = Change | "unchanged" | "duplicate";
/**
 * What became of an event.
 * - `superseded`: it arrived after a later event, which decided the state
 * - `expired`: it is older than the log, so it was not applied
 * - `erased`: an operator had erased its booking, so it was not applied
 */
export type Outcome = FoldOutcome | "superseded" | "expired" | "erased";
export const foldWarnings = ["booking-unknown", "replaced"] as const;
/**
 * What the sender of an event should know, decided by the booking before it.
 * - `booking-unknown`: a delete of a booking that was never created
 * - `replaced`: a create that replaced other content of an active booking
 */
export type FoldWarning = (typeof foldWarnings)[number];
/**
 * What the sender of an event should know: mostly a likely mistake that loses no data.
 * - `key-reused`: an earlier event of the booking has the same idempotency key, with another kind or content
 * - `reference-kind`: a delete by a consumer's reference, although the consumer has bookings with trip references. The
 *   delete does not concern those
 */
export type WarningCode = FoldWarning | "key-reused" | "reference-kind";

/** What the fold knows of an event. It compares contents by their digests. */
export interface FoldEvent {
  id: string;
  kind: EventKind;
  /** The place in the order of receipt, in microseconds: see `sequence.ts` of the queue package. */
  sequence: number;
  hasIdempotencyKey: boolean;
  /** Equal if and only if the canonical contents are. */
  contentDigest: string;
  receivedAt: Date;
}

/** A booking after its events. */
export interface BookingState {
  state: "active" | "deleted";
  /** The event that decided the state. */
  eventId: string;
  sequence: number;
  /** The content of the booking; a deleted booking keeps its last one. Null: only deletes have been received. */
  content: {
    digest: string;
    /** The newest event that sent the content. Its payload is the booking's payload. */
    eventId: string;
    /** The newest event without an idempotency key that sent this content. */
    newestKeylessSequence: number | null;
  } | null;
  /** The newest event that was folded in. */
  lastSequence: number;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

type Condition = "same content" | "repeats an earlier create" | "repeats the last content" | "otherwise";
type Rule = readonly [condition: Condition, outcome: FoldOutcome];

/**
 * What an event does to its booking: the first rule that applies, by the booking's state before and the event's kind.
 *
 * Updates may go from A to B and back to A; that is not a repetition. But a retry that arrives late must not undo later
 * events. That is why there are rules for repeated creates, and for updates that repeat a deleted content.
 */
const transitions: Record<"none" | BookingState["state"], Record<EventKind, readonly Rule[]>> = {
  none: {
    create: [["otherwise", "created"]],
    update: [["otherwise", "created"]],
    delete: [["otherwise", "deleted"]],
  },
  active: {
    create: [
      ["same content", "unchanged"],
      ["repeats an earlier create", "duplicate"],
      ["otherwise", "updated"],
    ],
    update: [
      ["same content", "unchanged"],
      ["otherwise", "updated"],
    ],
    delete: [["otherwise", "deleted"]],
  },
  deleted: {
    create: [
      ["repeats an earlier create", "duplicate"],
      ["otherwise", "recreated"],
    ],
    update: [
      ["repeats the last content", "duplicate"],
      ["otherwise", "recreated"],
    ],
    delete: [["otherwise", "unchanged"]],
  },
};

export interface FoldStep {
  event: FoldEvent;
  outcome: FoldOutcome;
  warning: FoldWarning | null;
  /** The state after the event. */
  after: BookingState;
}

/**
 * Folds one event into its booking.
 *
 * @param before the state before the event; null: there is no booking
 * @param options.earlierCreate the sequence of the newest create before the event with the same content and without an
 *   idempotency key; undefined: there is none. It matters only if the event is such a create too
 * @param options.duplicateWindowMs an event received later than this after another one does not repeat it
 */
export function foldEvent(
  before: BookingState | null,
  event: FoldEvent,
  options: { earlierCreate: number | undefined; duplicateWindowMs: number },
): FoldStep {
  const rules = transitions[before?.state ?? "none"][event.kind];
  const outcome = findOutcome(rules, before, event, options);
  return { event, outcome, warning: findWarning(before, event, outcome), after: applyOutcome(before, event, outcome) };
}

/**
 * Folds events of one booking into its state.
 *
 * @param before as for {@link foldEvent}
 * @param events in sequence order, all later than the events in `before`
 * @param options.earlierCreates by content digest, the newest create without an idempotency key before `events`. Only
 *   the digests of `events` are needed
 * @returns one step per event
 */
export function foldEvents(
  before: BookingState | null,
  events: readonly FoldEvent[],
  options: { earlierCreates: ReadonlyMap<string, number>; duplicateWindowMs: number },
): FoldStep[] {
  const { duplicateWindowMs } = options;
  const creates = new Map(options.earlierCreates);
  let current = before;
  return events.map((event) => {
    const step = foldEvent(current, event, { earlierCreate: creates.get(event.contentDigest), duplicateWindowMs });
    if (event.kind === "create" && !event.hasIdempotencyKey) creates.set(event.contentDigest, event.sequence);
    current = step.after;
    return step;
  });
}

/** Whether all later events do the same to both states. */
export function isSameState(one: BookingState, other: BookingState): boolean {
  return (
    one.state === other.state &&
    one.eventId === other.eventId &&
    one.content?.digest === other.content?.digest &&
    one.content?.newestKeylessSequence === other.content?.newestKeylessSequence
  );
}

/** The event that sent the content may have been removed from the log, and the booking still knows its digest. */
export function recallContent(logged: BookingState["content"], stored: BookingState["content"]) {
  const isKnown = logged !== null && logged.eventId === stored?.eventId;
  return isKnown ? { ...logged, digest: stored.digest } : logged;
}

function findOutcome(
  rules: readonly Rule[],
  before: BookingState | null,
  event: FoldEvent,
  { earlierCreate, duplicateWindowMs }: { earlierCreate: number | undefined; duplicateWindowMs: number },
): FoldOutcome {
  const content = before?.content ?? null;
  const isSameContent = content?.digest === event.contentDigest;
  const repeats = (earlierSequence: number | null | undefined): boolean =>
    !event.hasIdempotencyKey &&
    typeof earlierSequence === "number" &&
    event.sequence - earlierSequence <= duplicateWindowMs * 1_000;
  const applies = {
    "same content": isSameContent,
    "repeats an earlier create": repeats(earlierCreate),
    "repeats the last content": isSameContent && repeats(content?.newestKeylessSequence),
    otherwise: true,
  } satisfies Record<Condition, boolean>;
  const rule = rules.find(([condition]) => applies[condition]);
  if (rule === undefined) throw new Error("Every list of rules ends with one that always applies.");
  return rule[1];
}

function findWarning(before: BookingState | null, { kind }: FoldEvent, outcome: FoldOutcome): FoldWarning | null {
  const isUnknown = before === null || before.content === null;
  if (kind === "delete") return isUnknown ? "booking-unknown" : null;
  return kind === "create" && outcome === "updated" ? "replaced" : null;
}

function applyOutcome(before: BookingState | null, event: FoldEvent, outcome: FoldOutcome): BookingState {
  switch (outcome) {
    case "created":
    case "updated":
    case "recreated":
      return {
        state: "active",
        eventId: event.id,
        sequence: event.sequence,
        content: {
          digest: event.contentDigest,
          eventId: event.id,
          newestKeylessSequence: event.hasIdempotencyKey ? null : event.sequence,
        },
        lastSequence: event.sequence,
        createdAt: before?.createdAt ?? event.receivedAt,
        updatedAt: event.receivedAt,
        deletedAt: null,
      };
    case "deleted":
      return {
        state: "deleted",
        eventId: event.id,
        sequence: event.sequence,
        content: before?.content ?? null,
        lastSequence: event.sequence,
        createdAt: before?.createdAt ?? event.receivedAt,
        updatedAt: event.receivedAt,
        deletedAt: event.receivedAt,
      };
    case "unchanged":
    case "duplicate":
      if (before === null) throw new Error("The first event of a booking always changes it.");
      return { ...before, lastSequence: event.sequence, content: repeatContent(before, event, outcome) };
  }
}

/**
 * Each event that sends the content of an active booking again makes it newer. The log keeps the newest events longest,
 * so the content is that of the newest event.
 */
function repeatContent(before: BookingState, event: FoldEvent, outcome: FoldOutcome): BookingState["content"] {
  const isRepeated = before.state === "active" && outcome === "unchanged";
  if (before.content === null || !isRepeated) return before.content;
  const newest = event.hasIdempotencyKey ? before.content.newestKeylessSequence : event.sequence;
  return { ...before.content, eventId: event.id, newestKeylessSequence: newest };
}

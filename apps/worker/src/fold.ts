import type { EventKind } from "@booking-events/schema";
import type { Change } from "@booking-events/store";

/** What the fold needs to know of an event. Contents are compared by their digests. */
export interface FoldEvent {
  id: string;
  kind: EventKind;
  /** The order of receipt, in microseconds: see the queue package's `sequence.ts`. */
  sequence: number;
  hasIdempotencyKey: boolean;
  /** Hex of the SHA-256 of the canonical content. */
  contentDigest: string;
  receivedAt: Date;
}

/** A booking as its events have left it. */
export interface BookingState {
  state: "active" | "deleted";
  /** The event that decided the state. */
  eventId: string;
  sequence: number;
  /** What the booking holds; of a deleted booking, what it held. Null: only deletes have been received. */
  content: {
    digest: string;
    /** The newest event without an idempotency key that sent this content. */
    newestKeylessSequence: number | null;
  } | null;
  /** The newest event that was folded in. */
  lastSequence: number;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

type FoldOutcome = Change | "unchanged" | "duplicate";

type Condition = "same content" | "repeats an earlier create" | "repeats the last content" | "otherwise";
type Rule = readonly [condition: Condition, outcome: FoldOutcome];

/**
 * What an event does to its booking: by the booking's state before, then the event's kind, the first rule that applies.
 *
 * Updates may go from A to B and back to A: that is no repetition. A retry that arrives late must not undo what came
 * after it, though: hence the rules on repeated creates, and on updates that repeat what a delete has ended.
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
  /** The state after the event. */
  after: BookingState;
}

/**
 * Folds events of one booking into its state.
 *
 * @param before the state before the first of the events; null: the booking is not known
 * @param events in sequence order, all later than what `before` holds
 * @param options.earlierCreates for each content digest, the newest create without an idempotency key before `events`.
 *   Digests that none of the events has may be left out
 * @param options.duplicateWindowMs how far apart two events may have been received to count as repetitions
 * @returns one step for each event
 */
export function foldEvents(
  before: BookingState | null,
  events: FoldEvent[],
  options: { earlierCreates: ReadonlyMap<string, number>; duplicateWindowMs: number },
): FoldStep[] {
  const creates = new Map(options.earlierCreates);
  const windowMicroseconds = options.duplicateWindowMs * 1_000;
  let current = before;
  return events.map((event) => {
    const rules = transitions[current?.state ?? "none"][event.kind];
    const outcome = findOutcome(rules, current, event, creates, windowMicroseconds);
    const after = applyOutcome(current, event, outcome);
    if (event.kind === "create" && !event.hasIdempotencyKey) creates.set(event.contentDigest, event.sequence);
    current = after;
    return { event, outcome, after };
  });
}

function findOutcome(
  rules: readonly Rule[],
  before: BookingState | null,
  event: FoldEvent,
  creates: ReadonlyMap<string, number>,
  windowMicroseconds: number,
): FoldOutcome {
  const content = before?.content ?? null;
  const isSameContent = content?.digest === event.contentDigest;
  const repeats = (earlierSequence: number | null | undefined): boolean =>
    !event.hasIdempotencyKey &&
    typeof earlierSequence === "number" &&
    event.sequence - earlierSequence <= windowMicroseconds;
  const applies = {
    "same content": isSameContent,
    "repeats an earlier create": repeats(creates.get(event.contentDigest)),
    "repeats the last content": isSameContent && repeats(content?.newestKeylessSequence),
    otherwise: true,
  } satisfies Record<Condition, boolean>;
  const rule = rules.find(([condition]) => applies[condition]);
  if (rule === undefined) throw new Error("Each list of rules ends with one that always applies.");
  return rule[1];
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

/** An active booking's content that was sent once more is as new as its last sending. */
function repeatContent(before: BookingState, event: FoldEvent, outcome: FoldOutcome): BookingState["content"] {
  const isRepeated = before.state === "active" && outcome === "unchanged" && !event.hasIdempotencyKey;
  if (before.content === null || !isRepeated) return before.content;
  return { ...before.content, newestKeylessSequence: event.sequence };
}

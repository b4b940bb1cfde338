import { maxAttempts, type QueuedEvent } from "@booking-events/queue";
import type { EventEnvelope, ReferenceKind } from "@booking-events/schema";
import type { ChangedFields, DeadLetter, EventDetails } from "@booking-events/store";
import { isInQueue } from "../dead-letters/find-letters.ts";
import { toSeconds } from "../describe.ts";

/** One event of a booking, wherever it is. */
export interface StoryEvent {
  id: string;
  kind: string | null;
  referenceKind: ReferenceKind | null;
  /** Null if the event can't be read. */
  sequence: number | null;
  receivedAt: Date | null;
  /** `applied`: it is in the log. `dead`: it could not be applied. The others are in the queue. */
  status: "applied" | "dead" | QueuedEvent["state"];
  /** Why it did what it did, or why it has not done it yet, in sentences without any of its values. */
  why: string;
  /** For an event in the log. */
  applied: EventDetails | null;
  /** What it has changed in the booking's content. Null: it is not in the log. */
  changed: ChangedFields | null;
}

/** What is told of an event in the queue. */
export type QueuedStory = Omit<QueuedEvent, "envelope"> & {
  envelope: Pick<EventEnvelope, "kind" | "sequence" | "receivedAt"> | null;
};

interface Found {
  applied: EventDetails[];
  /** By the ids of applied events. */
  changes: ReadonlyMap<string, ChangedFields>;
  queued: QueuedStory[];
  /** Whether an operator has paused the queue. */
  isPaused: boolean;
  letters: DeadLetter[];
}

/** Puts the events in the order in which they count. Those without a known place are last. */
export function tellStory({ applied, changes, queued, isPaused, letters }: Found): StoryEvent[] {
  const letterOf = new Map(letters.map((letter) => [letter.eventId, letter]));
  const story = new Map<string, StoryEvent>();
  for (const letter of letters) story.set(letter.eventId, tellDeadLetter(letter));
  for (const event of queued)
    story.set(event.eventId, tellQueued(event, { isPaused, letter: letterOf.get(event.eventId) }));
  for (const event of applied)
    story.set(event.id, { ...tellApplied(event, letterOf.get(event.id)), changed: changes.get(event.id) ?? null });
  return [...story.values()].sort(compareByPlace);
}

function compareByPlace(one: StoryEvent, other: StoryEvent): number {
  const difference = (one.sequence ?? Number.MAX_VALUE) - (other.sequence ?? Number.MAX_VALUE);
  return difference || (one.id < other.id ? -1 : 1);
}

function tellApplied(event: EventDetails, letter: DeadLetter | undefined): Omit<StoryEvent, "changed"> {
  const { id, kind, referenceKind, sequence, receivedAt } = event;
  const before = letter === undefined ? "" : ` It had been a dead letter (${letter.errorCode}).`;
  return {
    id,
    kind,
    referenceKind,
    sequence,
    receivedAt,
    status: "applied",
    applied: event,
    why: explainOutcome(event) + before + explainOrigin(event),
  };
}

/** Only an operator queues events without a secret. */
function explainOrigin({ secretId, idempotencyKey }: EventDetails): string {
  return secretId === null && idempotencyKey?.startsWith("restore-") ? " An operator restored the booking." : "";
}

function explainOutcome({ kind, outcome, duplicateOf }: EventDetails): string {
  switch (outcome) {
    case "created":
      return "There was no booking.";
    case "updated":
      return "The booking had other content.";
    case "deleted":
      return "A delete takes effect whatever the booking holds.";
    case "recreated":
      return "The booking was deleted.";
    case "unchanged":
      return kind === "delete" ? "The booking was deleted already." : "The booking had the same content.";
    case "duplicate":
      if (duplicateOf !== null) return `It has the idempotency key and the content of ${duplicateOf}.`;
      return kind === "create" ? "It repeats an earlier create." : "It repeats the content from before the deletion.";
    case "superseded":
      return "A later event was applied before it.";
    default:
      return "";
  }
}

function tellQueued(
  event: QueuedStory,
  { isPaused, letter }: { isPaused: boolean; letter: DeadLetter | undefined },
): StoryEvent {
  const { eventId, kind, state, envelope } = event;
  const why = [
    explainState(event, isPaused),
    ...(envelope === null ? ["Only a worker of a later release may be able to read it."] : []),
    ...(event.lastFailure === null ? [] : [`The last attempt failed: ${event.lastFailure}`]),
    ...(letter === undefined ? [] : [`It was replayed, and had been a dead letter (${letter.errorCode}).`]),
  ];
  return {
    id: eventId,
    kind: kind ?? envelope?.kind ?? null,
    referenceKind: null,
    sequence: envelope?.sequence ?? null,
    receivedAt: envelope === null ? null : new Date(envelope.receivedAt),
    status: state,
    why: why.join(" "),
    applied: null,
    changed: null,
  };
}

function explainState({ state, failedAttempts, nextAttemptAt, heldSince }: QueuedStory, isPaused: boolean): string {
  switch (state) {
    case "waiting":
      return isPaused ? "The queue is paused. To resume it: ops queue resume." : "It waits for a worker.";
    case "delayed":
      return `Attempt ${failedAttempts + 1} of ${maxAttempts} is at ${nextAttemptAt && toSeconds(nextAttemptAt)}.`;
    case "held":
      return heldSince === null ? "A worker has it." : `A worker has had it since ${toSeconds(heldSince)}.`;
    case "given-up":
      return "Its workers died too often. A worker will try it alone.";
  }
}

/** The sequence is the time of receipt in microseconds, or later by very little. */
function tellDeadLetter(letter: DeadLetter): StoryEvent {
  const { eventId, kind, referenceKind, sequence, errorCode, error, attempts, resolution } = letter;
  const failed = `${attempts === 1 ? "1 attempt" : `${attempts} attempts`} failed, ${errorCode}: ${error}`;
  return {
    id: eventId,
    kind,
    referenceKind,
    sequence,
    status: "dead",
    applied: null,
    changed: null,
    receivedAt: sequence === null ? null : new Date(Math.floor(sequence / 1_000)),
    why: `${failed} ${explainLetter(letter)}`.trimEnd() + (resolution === null ? "" : ` Closed: ${resolution}.`),
  };
}

function explainLetter(letter: DeadLetter): string {
  if (letter.resolution !== null) return "";
  return isInQueue(letter) ? "It was replayed, and has no result yet." : "Replay or discard it.";
}

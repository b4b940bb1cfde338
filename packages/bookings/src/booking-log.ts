import type { BookingState, FoldEvent, FoldWarning, Outcome } from "./fold.ts";

/** An event in a booking's log, with what is recorded of it. */
export interface LoggedEvent extends FoldEvent {
  outcome: Outcome;
  warning: FoldWarning | null;
  /**
   * For a create without an idempotency key: the sequence of the newest such create before it with the same content.
   */
  earlierCreate: number | null;
  /**
   * The booking after the event. `createdAt` is not stored with events.
   *
   * It may name events that were removed from the log because they were too old. The time of such an event is that in
   * its id, and the digest of its content is a text that equals no digest.
   */
  after: Omit<BookingState, "createdAt">;
}

/** An event in the log whose outcome, warning or state has changed, since a late event took its place before it. */
export interface RevisedEvent {
  event: Pick<FoldEvent, "id" | "kind" | "contentDigest">;
  outcome: Outcome;
  warning: FoldWarning | null;
  after: BookingState;
}

/** The creates with one content and without an idempotency key that are next to a place in a booking's log. */
export interface CreatesAround {
  /** The sequence of the newest one before the place; null: there is none. */
  earlier: number | null;
  /** The oldest one after the place. Its outcome depends on whether there is such a create at the place. */
  nextId: string | null;
  nextSequence: number | null;
}

import type { BookingChange } from "./read-changes.ts";

/**
 * Changes are missing: the program has not followed for so long that they were removed, or somebody deleted them or
 * restored the database.
 */
export class FeedGapError extends Error {
  override name = "FeedGapError";
  /** The last id before the gap. */
  readonly after: number;

  constructor(after: number, what: string) {
    super(`The feed has a gap after id ${after}: ${what} Start over from a snapshot.`);
    this.after = after;
  }
}

/** `onError` has answered `"stop"`, and the cause is what `onChange` threw; or the cause is what `onError` threw. */
export class HandlingStopped extends Error {
  override name = "HandlingStopped";
  readonly change: BookingChange;

  constructor(change: BookingChange, cause: unknown) {
    super(`The consumer stopped at change ${change.id}.`, { cause });
    this.change = change;
  }
}

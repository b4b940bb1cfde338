import type { FeedChange } from "@booking-events/store";

/** A change in the feed, without what the booking holds: that is read when the change is handed over. */
export interface FeedEntry {
  id: number;
  bookingId: string;
  partner: string;
  change: FeedChange;
  /** When the transaction began that made it, by this process' monotonic clock. */
  atMs: number;
  /** Changes of the booking that came before were skipped, or may have been. */
  standsForEarlier: boolean;
}

/** A consumer that is further behind than this, and wants the latest only, skips what a later change overrides. */
export const laggingMs = 5_000;

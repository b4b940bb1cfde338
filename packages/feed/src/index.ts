export {
  FeedGapError,
  ForeignReaderError,
  HandlerEndedTransaction,
  HandlerTimedOut,
  HandlingStopped,
} from "./errors.ts";
export { type FollowOptions, follow } from "./follow.ts";
export type { Failure, HandlingContext, NextStep } from "./handle-changes.ts";
export type { FeedLogger } from "./logger.ts";
export type { BookingChange } from "./read-changes.ts";
export type { SnapshotBooking, SnapshotContext } from "./take-snapshot.ts";

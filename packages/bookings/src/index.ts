export type { CreatesAround, LoggedEvent, RevisedEvent } from "./booking-log.ts";
export { toCanonicalJson } from "./canonical-json.ts";
export { comparePlaces, findRepeats, type KeyUses, type Place, type Repeats } from "./find-repeats.ts";
export {
  type BookingState,
  type Change,
  type FoldEvent,
  type FoldStep,
  type FoldWarning,
  foldEvent,
  foldEvents,
  foldWarnings,
  isSameState,
  type Outcome,
  recallContent,
  type WarningCode,
} from "./fold.ts";
export {
  type BookingPlan,
  findLateEvents,
  isRepeatable,
  type PlannedChange,
  planBooking,
  type RecordedStep,
} from "./plan-booking.ts";
export { Refold, type Refolding } from "./refold.ts";

export { toCanonicalJson } from "./canonical-json.ts";
export {
  type BookingState,
  type Change,
  type FoldEvent,
  type FoldOutcome,
  type FoldStep,
  foldEvent,
  foldEvents,
  isSameState,
  type Outcome,
  type WarningCode,
} from "./fold.ts";
export {
  comparePlaces,
  type KeySettlement,
  type KeyUses,
  type Place,
  settleKeys,
} from "./settle-keys.ts";

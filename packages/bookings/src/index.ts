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
} from "./fold.ts";

export type {
  BookingStatus,
  Difference,
  ListedReference,
  Receipt,
  ReconciliationCounts,
} from "../answers/lookup-bodies.ts";
export { BookingEventsError } from "./booking-events-error.ts";
export {
  type AskOptions,
  type BookingEventsClient,
  type BookingOptions,
  type ClientOptions,
  createBookingEventsClient,
  type DryRunOptions,
  type ReconcileOptions,
  type SendOptions,
} from "./create-client.ts";
export { digestOf } from "./digest-of.ts";

export type { Activity } from "../answers/activity.ts";
export type {
  BookingStatus,
  Difference,
  ListedReference,
  Receipt,
  ReconciliationCounts,
} from "../answers/lookup-bodies.ts";
export type { BatchAnswer, BatchEvent } from "./batch-event.ts";
export { BookingEventsError } from "./booking-events-error.ts";
export {
  type ActivityOptions,
  type AskOptions,
  type BatchOptions,
  type BookingEventsClient,
  type BookingOptions,
  type ClientOptions,
  createBookingEventsClient,
  type DryRunOptions,
  type ReconcileOptions,
  type SendOptions,
} from "./create-client.ts";
export { digestOf } from "./digest-of.ts";
export { version } from "./version.ts";

export type { AppliedOutcome, Receipt } from "../receipt.ts";
export { BookingEventsError } from "./booking-events-error.ts";
export {
  type AskOptions,
  type BookingEventsClient,
  type BookingStatus,
  type ClientOptions,
  createBookingEventsClient,
  type DryRunOptions,
  type ReconcileOptions,
  type SendOptions,
} from "./create-client.ts";
export { digestOf } from "./digest-of.ts";
export type { Difference, ListedBooking, ReconcileSummary } from "./reconcile.ts";

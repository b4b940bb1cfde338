export { BookingEventsError } from "./booking-events-error.ts";
export {
  type BookingEventsClient,
  type ClientOptions,
  createBookingEventsClient,
  type DryRunOptions,
  type SendOptions,
} from "./create-client.ts";

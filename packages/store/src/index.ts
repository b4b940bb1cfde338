export { appendChanges, type BookingChange, type Change, type ChangeToInsert, readChanges } from "./booking-changes.ts";
export {
  type EventDetails,
  type EventToInsert,
  findBookingKeys,
  findEarlierCreates,
  findEvent,
  findProcessed,
  insertEvents,
  type LoggedEvent,
  listBookingEvents,
  listEvents,
  type Outcome,
  readHistories,
  updateOutcomes,
} from "./booking-events.ts";
export { bookingKey } from "./booking-key.ts";
export {
  type BookingDetails,
  type BookingRow,
  type BookingToSave,
  deleteBookings,
  findBooking,
  insertBookings,
  lockBookings,
  updateBookings,
} from "./bookings.ts";
export { createPool, inTransaction, type Queryable, settleAll } from "./database.ts";
export {
  type DeadLetter,
  type DeadLetterToWrite,
  findDeadLetter,
  listDeadLetters,
  markReplayed,
  resolveDeadLetter,
  writeDeadLetter,
} from "./dead-letters.ts";
export { claimIdempotencyKeys, type IdempotencyClaim, updateKeyOwners } from "./idempotency-keys.ts";
export { migrate, NewerSchemaError } from "./migrate.ts";

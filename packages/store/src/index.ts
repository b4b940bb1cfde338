export { appendChanges, type BookingChange, type ChangeToInsert, readChanges } from "./booking-changes.ts";
export {
  type EventDetails,
  type EventToInsert,
  findCreatesAround,
  findEvent,
  findKeyUses,
  findMisjudgedKeys,
  findProcessed,
  insertEvents,
  type LogPage,
  type LogRange,
  listBookingEvents,
  listEvents,
  type MisjudgedKey,
  markDuplicates,
  markReferenceKind,
  markReusing,
  readLog,
  reviseEvents,
  startOfLog,
} from "./booking-events.ts";
export { bookingKey } from "./booking-key.ts";
export {
  type BookingDetails,
  type BookingIdentity,
  type BookingToSave,
  findBookings,
  findLockedBookings,
  type IfLocked,
  insertBookings,
  lockBookings,
  readBookings,
  type StoredBooking,
  updateBookings,
} from "./bookings.ts";
export {
  createPool,
  inTransaction,
  NotBegun,
  type Queryable,
  RollBack,
  setLockTimeout,
  settleAll,
} from "./database.ts";
export {
  closeLettersOfApplied,
  type DeadLetter,
  type DeadLetterToWrite,
  findDeadLetter,
  listDeadLetters,
  markReplayed,
  resolveDeadLetter,
  writeDeadLetter,
} from "./dead-letters.ts";
export { findDurabilityProblems } from "./find-durability-problems.ts";
export { migrate, NewerSchemaError } from "./migrate.ts";
export { probeWrites } from "./probe-writes.ts";

export { appendChanges, type ChangeToInsert, channelOf, type FeedChange } from "./booking-changes.ts";
export {
  type EventToInsert,
  findProcessed,
  insertEvents,
  markDuplicates,
  markReferenceKind,
  markReusing,
  reviseEvents,
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
  beginWithLimits,
  createPool,
  defaultSchema,
  inPreparedTransaction,
  inTransaction,
  NotBegun,
  type Queryable,
  RollBack,
  schemaOf,
  setLockTimeout,
  settleAll,
  staleStatement,
} from "./database.ts";
export {
  closeLettersOfApplied,
  countOpenDeadLetters,
  type DeadLetter,
  type DeadLetterToWrite,
  findDeadLetter,
  listDeadLetters,
  markReplayed,
  resolveDeadLetter,
  writeDeadLetter,
} from "./dead-letters.ts";
export { type DigestKey, DigestKeyError, openDigestKey, readDigestKey } from "./digest-key.ts";
export {
  type BookingToErase,
  beginErasure,
  type ChangesOf,
  countErasedJob,
  type ErasedCounts,
  eraseBooking,
  eraseDeadLetters,
  findChangesOf,
  recordErasedLetter,
} from "./erase-booking.ts";
export { type ErasedEvent, findErased, recordErased, recordIfErased, toErasedEntry } from "./erased-bookings.ts";
export { estimateRemovals, type Removal } from "./estimate-removals.ts";
export {
  type EventDetails,
  type EventFilter,
  type FollowPosition,
  findEvent,
  findFollowPosition,
  findMisjudgedKeys,
  findNewEvents,
  followWindowMs,
  listBookingEvents,
  listEvents,
  type MisjudgedKey,
} from "./event-details.ts";
export { firstIdInPeriod, firstIdOfBooking } from "./event-ids.ts";
export { type DatabaseExamination, examineDatabase } from "./examine-database.ts";
export { findDurabilityProblems } from "./find-durability-problems.ts";
export { findGuestBookings, findGuestLetters, type GuestBooking, type GuestLetter } from "./find-guests.ts";
export { findStandbyProblems } from "./find-standby-problems.ts";
export { boundGuestHashes, type ContactKind, contactsOf, hashContacts, normalizeContact } from "./guest-contacts.ts";
export { type GuestSearch, type MatchingEvent, matchEnvelope } from "./guest-search.ts";
export { toJsonbText } from "./jsonb-text.ts";
export { readLogHorizon } from "./log-horizon.ts";
export { type LogStatus, type Maintained, maintain, type RetentionRules, readLogStatus } from "./maintain.ts";
export { type MigrationStatus, migrate, SchemaRefusedError, UnusableDatabaseError } from "./migrate.ts";
export {
  type Comparison,
  compareBookings,
  findPartnerBooking,
  type ListedBooking,
  type ListedHere,
  listPartnerBookings,
  type PartnerBooking,
  startOfPartnerBookings,
} from "./partner-bookings.ts";
export { probeWrites } from "./probe-writes.ts";
export { type DatabaseStatus, type Rhythm, readDatabaseStatus } from "./read-database-status.ts";
export { findCreatesAround, findKeyUses, type LogPage, type LogRange, readLog, startOfLog } from "./read-log.ts";
export { findRecordedEvent, probeReads, type RecordedEvent } from "./receipts.ts";
export { rewriteTables } from "./rewrite-tables.ts";
export { FormerPrimary, ServerClient } from "./server-client.ts";
export { readTrip, type Trip } from "./trip.ts";
export { countUnreadableValues, type UnreadableValues } from "./unreadable-values.ts";

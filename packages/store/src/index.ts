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
} from "./connect/database.ts";
export { FormerPrimary, ServerClient } from "./connect/server-client.ts";
export { type DigestKey, DigestKeyError, openDigestKey, readDigestKey } from "./guests/digest-key.ts";
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
} from "./guests/erase-booking.ts";
export { type ErasedEvent, findErased, recordErased, recordIfErased, toErasedEntry } from "./guests/erased-bookings.ts";
export { findGuestBookings, findGuestLetters, type GuestBooking, type GuestLetter } from "./guests/find-guests.ts";
export {
  boundGuestHashes,
  type ContactKind,
  contactsOf,
  hashContacts,
  normalizeContact,
} from "./guests/guest-contacts.ts";
export { type GuestSearch, type MatchingEvent, matchEnvelope } from "./guests/guest-search.ts";
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
} from "./look/event-details.ts";
export { type DatabaseExamination, examineDatabase } from "./look/examine-database.ts";
export {
  type Comparison,
  compareBookings,
  findPartnerBooking,
  type ListedBooking,
  type ListedHere,
  listPartnerBookings,
  type PartnerBooking,
  startOfPartnerBookings,
} from "./look/partner-bookings.ts";
export { type DatabaseStatus, type Rhythm, readDatabaseStatus } from "./look/read-database-status.ts";
export { findRecordedEvent, probeReads, type RecordedEvent } from "./look/receipts.ts";
export { countUnreadableValues, type UnreadableValues } from "./look/unreadable-values.ts";
export { appendChanges, type ChangeToInsert, channelOf, type FeedChange } from "./tables/booking-changes.ts";
export {
  type EventToInsert,
  findProcessed,
  insertEvents,
  markDuplicates,
  markReferenceKind,
  markReusing,
  reviseEvents,
} from "./tables/booking-events.ts";
export { bookingKey } from "./tables/booking-key.ts";
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
} from "./tables/bookings.ts";
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
} from "./tables/dead-letters.ts";
export { firstIdInPeriod, firstIdOfBooking } from "./tables/event-ids.ts";
export { toJsonbText } from "./tables/jsonb-text.ts";
export { readLogHorizon } from "./tables/log-horizon.ts";
export { findCreatesAround, findKeyUses, type LogPage, type LogRange, readLog, startOfLog } from "./tables/read-log.ts";
export { readTrip, type Trip } from "./tables/trip.ts";
export { estimateRemovals, type Removal } from "./upkeep/estimate-removals.ts";
export { findDurabilityProblems } from "./upkeep/find-durability-problems.ts";
export { findStandbyProblems } from "./upkeep/find-standby-problems.ts";
export { type LogStatus, type Maintained, maintain, type RetentionRules, readLogStatus } from "./upkeep/maintain.ts";
export { type MigrationStatus, migrate, SchemaRefusedError, UnusableDatabaseError } from "./upkeep/migrate.ts";
export { probeWrites } from "./upkeep/probe-writes.ts";
export { rewriteTables } from "./upkeep/rewrite-tables.ts";

export { FormerPrimary } from "./connect/leave-former-primary.ts";
export { withOwnConnection } from "./connect/own-connection.ts";
export { createPool } from "./connect/pool.ts";
export { inPreparedTransaction, queryPrepared } from "./connect/prepared-transaction.ts";
export type { Queryable } from "./connect/queryable.ts";
export { RollBack, staleStatement } from "./connect/roll-back.ts";
export { type Breakable, ServerClient } from "./connect/server-client.ts";
export { settleAll } from "./connect/settle-all.ts";
export { inTransaction, NotBegun, readOneSnapshot } from "./connect/transaction.ts";
export { beginWithLimits, defaultSchema, setLockTimeout, testSchemaOf } from "./connect/transaction-limits.ts";
export type { BookingToErase } from "./guests/booking-to-erase.ts";
export { type DigestKey, DigestKeyError, openDigestKey, readDigestKey } from "./guests/digest-key.ts";
export { eraseBooking } from "./guests/erase-booking.ts";
export { eraseDeadLetters, recordErasedLetter } from "./guests/erase-dead-letters.ts";
export {
  eraseIdentity,
  findErased,
  findErasedKeys,
  recordErased,
  recordIfErased,
  toErasedEntry,
} from "./guests/erased-bookings.ts";
export {
  beginErasure,
  countErasedJob,
  type ErasedCounts,
  type Erasure,
  findErasure,
  listErasures,
  removeGuestSamples,
} from "./guests/erasures.ts";
export { findGuestBookings, findGuestLetters, type GuestBooking, type GuestLetter } from "./guests/find-guests.ts";
export {
  boundGuestHashes,
  hashContacts,
} from "./guests/guest-contacts.ts";
export { GuestHits } from "./guests/guest-hits.ts";
export {
  type GuestSearch,
  type MatchingEvent,
  matchEnvelope,
  toGuestSearch,
} from "./guests/guest-search.ts";
export {
  type Arrival,
  type ArrivalCounts,
  type ArrivalWindow,
  arrivalWindowMs,
  countArrivals,
  fieldsToReach,
  findWaitingArrivals,
  listArrivals,
  nameArrival,
  toWaitingWord,
  type WaitingWord,
  waitsLong,
} from "./look/arrivals.ts";
export { findBookingAt } from "./look/booking-at.ts";
export {
  type BookingChange,
  type BookingDelivery,
  listBookingChanges,
  listBookingDeliveries,
} from "./look/booking-deliveries.ts";
export { type BookingDetails, findBookings } from "./look/booking-details.ts";
export {
  type BookingPoint,
  compareFields,
  type FieldAtPoint,
  findBookingPoint,
  type PointInTime,
} from "./look/booking-point.ts";
export { type ChangedFields, findChangedFields } from "./look/changed-fields.ts";
export { estimateDefaultPartition } from "./look/estimate-default-partition.ts";
export { type DatabaseExamination, examineDatabase } from "./look/examine-database.ts";
export { type ExportedRow, type ExportFilter, exportBookings, exportEvents } from "./look/export-rows.ts";
export { findMisjudgedKeys, type MisjudgedKey } from "./look/find-misjudged-keys.ts";
export { findRestorable, findTouching, type RestorableBooking } from "./look/find-restorable.ts";
export { findWrongPayloads } from "./look/find-wrong-payloads.ts";
export { type FollowPosition, findFollowPosition, findNewEvents, followWindowMs } from "./look/follow-events.ts";
export {
  type EventDetails,
  type EventFilter,
  type EventSearch,
  findEvent,
  listBookingEvents,
  listEvents,
  searchEvents,
} from "./look/list-events.ts";
export { type Notice, type PartnerActivity, readPartnerActivity } from "./look/partner-activity.ts";
export {
  type Comparison,
  compareBookings,
  findPartnerBooking,
  type ListedBooking,
  type ListedHere,
  listPartnerBookings,
  type PartnerBooking,
  type PartnerReference,
  startOfPartnerBookings,
} from "./look/partner-bookings.ts";
export { type DatabaseStatus, type Rhythm, readDatabaseStatus } from "./look/read-database-status.ts";
export { type DatabaseTimes, readDatabaseTimes } from "./look/read-database-times.ts";
export { type Pace, type PaceWindow, readPaces } from "./look/read-paces.ts";
export { findRecordedEvent, probeReads, type RecordedEvent } from "./look/receipts.ts";
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
  type BookingIdentity,
  findLockedBookings,
  lockBookings,
  readBookings,
  type StoredBooking,
} from "./tables/bookings.ts";
export { toColumnName } from "./tables/content-columns.ts";
export {
  type DatabaseIdentity,
  OtherDatabase,
  otherDatabaseCode,
  readDatabaseIdentity,
  requireDatabase,
} from "./tables/database-id.ts";
export {
  areLettersClosed,
  closeLettersOfApplied,
  type DeadLetter,
  type DeadLetterGroup,
  type DeadLetterToWrite,
  findDeadLetter,
  groupDeadLetters,
  listDeadLetters,
  markReplayed,
  resolveDeadLetter,
  writeDeadLetter,
} from "./tables/dead-letters.ts";
export { firstIdInPeriod, firstIdOfBooking, timeOfId } from "./tables/event-ids.ts";
export {
  discardFeedDeadLetters,
  type FeedDeadLetter,
  listFeedDeadLetters,
  listParkedDeliveries,
  type ParkedDelivery,
  replayFeedDeadLetters,
  replayFeedSince,
} from "./tables/feed-deliveries.ts";
export {
  type FeedReader,
  listFeedReaders,
  notePlace,
  readFeedEnd,
  removeFeedReader,
  resetFeedReader,
} from "./tables/feed-readers.ts";
export { findCreatesAround } from "./tables/find-creates-around.ts";
export { findKeyUses } from "./tables/find-key-uses.ts";
export { toJsonbText } from "./tables/jsonb-text.ts";
export { readLogHorizon } from "./tables/log-horizon.ts";
export {
  type ActionFilter,
  type ActionToWrite,
  listActions,
  type OperatorAction,
  writeAction,
} from "./tables/operator-actions.ts";
export { type LogPage, type LogRange, readLog, startOfLog } from "./tables/read-log.ts";
export {
  type BookingToSave,
  insertBookings,
  type PlannedBooking,
  readLogged,
  updateBookings,
} from "./tables/save-bookings.ts";
export {
  changeSubscription,
  channelOfSubscriptions,
  filterChanges,
  findSubscription,
  insertSubscription,
  listPullSubscriptions,
  listSubscriptions,
  listWebhookSubscriptions,
  type PullSubscription,
  pauseFailingSubscriptions,
  pauseSubscription,
  readSigningKeys,
  removeSubscription,
  resumeSubscription,
  rotateKeys,
  type Subscription,
  type SubscriptionSettings,
  type SubscriptionToAdd,
  type WebhookSubscription,
} from "./tables/subscriptions.ts";
export { readWorkerRules, recordWorkerRules, type WorkerRules } from "./tables/worker-rules.ts";
export { estimateRemovals, type Removal } from "./upkeep/estimate-removals.ts";
export { findCollationWarnings } from "./upkeep/find-collation-problems.ts";
export { findDurabilityProblems } from "./upkeep/find-durability-problems.ts";
export { findStandbyProblems } from "./upkeep/find-standby-problems.ts";
export { RolesRefusedError } from "./upkeep/grant.ts";
export {
  type Maintained,
  type MaintenanceOptions,
  maintain,
  type RetentionRules,
  testRetention,
} from "./upkeep/maintain.ts";
export { migrate, migrateAndGrant, SchemaRefusedError, UnusableDatabaseError } from "./upkeep/migrate.ts";
export { probeWrites } from "./upkeep/probe-writes.ts";
export { type Renormalised, renormaliseBookings } from "./upkeep/renormalise-bookings.ts";
export { rewriteTables } from "./upkeep/rewrite-tables.ts";

export { defaultBytesPerDay, type NewSecret, type Partner } from "@booking-events/partners";
export { countDaysKept, type FieldTotal, type QueueStatus, type RecordedRefusal } from "@booking-events/queue";
export {
  arrivalWindowMs,
  type BookingChange,
  type BookingDelivery,
  type BookingDetails,
  type DatabaseIdentity,
  type DatabaseStatus,
  type DeadLetter,
  type Erasure,
  type EventDetails,
  type EventFilter,
  type EventSearch,
  type FeedChange,
  type FeedDeadLetter,
  type FeedReader,
  type FieldAtPoint,
  followWindowMs,
  type GuestSearch,
  type Maintained,
  type OperatorAction,
  type ParkedDelivery,
  type PointInTime,
  type Removal,
  type Subscription,
  toGuestSearch,
} from "@booking-events/store";
export type { PostOutcome } from "@booking-events/subscribers";
export { describeValues } from "./actions/describe-values.ts";
export { listActions } from "./actions/list-actions.ts";
export type { ActingContext } from "./actions/record-action.ts";
export { recordLook } from "./actions/record-look.ts";
export { type Arrivals, type ArrivingGuest, findArrivals } from "./arrivals/find-arrivals.ts";
export { describeTrip, pickTrip } from "./bookings/describe-trip.ts";
export { findStory, type Story, TwoBookings, UnknownBooking } from "./bookings/find-story.ts";
export { findStuck, type StuckCause, type StuckEvent, type StuckEvents } from "./bookings/find-stuck.ts";
export { groupStuck, type StuckGroup, type StuckGroups } from "./bookings/group-stuck.ts";
export { type Proof, proveBooking, revealBooking, revealReasons, ticketPattern } from "./bookings/prove-booking.ts";
export { countDifferences, renormaliseBookings } from "./bookings/renormalise-bookings.ts";
export type { Repair } from "./bookings/repair-booking.ts";
export { planRepairs, type RepairSum, repairBookings } from "./bookings/repair-bookings.ts";
export type { QueueView } from "./bookings/search-queue.ts";
export type { StoryEvent } from "./bookings/tell-story.ts";
export { type VerificationSum, verifyBookings } from "./bookings/verify-bookings.ts";
export type { Context } from "./context.ts";
export { type Discard, discardDeadLetters } from "./dead-letters/discard-dead-letters.ts";
export { findLetters, findLettersOf, groupLetters, isInQueue, maxLetters } from "./dead-letters/find-letters.ts";
export { type Replay, replayDeadLetters } from "./dead-letters/replay-dead-letters.ts";
export { describeAge, describeBytes, describeCount, describeQuota, toSeconds } from "./describe.ts";
export type { Check } from "./doctor/check.ts";
export { checkEncryption, checkOvercommit, hasSpace } from "./doctor/check-host.ts";
export { checkRedis } from "./doctor/check-redis.ts";
export { runChecks } from "./doctor/run-checks.ts";
export { findEvent, findEvents, outcomes, searchLog } from "./events/find-events.ts";
export { followEvents } from "./events/follow-events.ts";
export { type LookedUpEvent, lookUpEvent } from "./events/look-up-event.ts";
export { exportedColumns, exportRows } from "./export/export-rows.ts";
export { describeBehind, describeReaderState, toProgress } from "./feed/describe-reader.ts";
export {
  discardReaderLetters,
  listParked,
  listReaderLetters,
  replayReaderLetters,
  requireLetters,
} from "./feed/reader-letters.ts";
export { listReaders, type NamedReader, removeReader, resetReader } from "./feed/readers.ts";
export { replayFeed } from "./feed/replay-feed.ts";
export { type Found, type FoundByText, findText } from "./find/find-text.ts";
export { type Counts, type Erased, eraseGuest, findGuestEverywhere } from "./guests/erase-guest.ts";
export { type Findings, type FoundGuest, findGuest, isNothing } from "./guests/find-guest.ts";
export { listErasures } from "./guests/list-erasures.ts";
export type { Rejection } from "./import/check-line.ts";
export { checkImport, importBookings, prepareImport } from "./import/import-bookings.ts";
export { isUuid } from "./is-uuid.ts";
export { openContext } from "./open-context.ts";
export { OperationCancelled, OperationFailure } from "./operation-failure.ts";
export { parseDuration, parseInstant, parsePast } from "./parse-past.ts";
export {
  addPartner,
  admitPartner,
  planRevocation,
  revokeSecret,
  rotateSecret,
  setPartner,
} from "./partners/change-partners.ts";
export { countWarnings } from "./partners/count-warnings.ts";
export { findRecentUse } from "./partners/find-recent-use.ts";
export { findRefusals } from "./partners/find-refusals.ts";
export { type ListedPartner, type ListedSecret, listPartners } from "./partners/list-partners.ts";
export { readWeek, readWeeks, type Week } from "./partners/read-week.ts";
export { attachDatabase, pauseQueue, readFedDatabase } from "./queue/change-queue.ts";
export type { Shortage } from "./queue/queue-events.ts";
export { retryEventsNow } from "./queue/retry-events-now.ts";
export { describeRestore } from "./restore/describe-restore.ts";
export { type PlannedBooking, restoreReasons } from "./restore/plan-restore.ts";
export {
  planRestore,
  type Restored,
  type RestoreProgress,
  type RestoreRequest,
  restoreBookings,
} from "./restore/restore-bookings.ts";
export type { RestoreResults } from "./restore/restore-run.ts";
export { RestoreSummary } from "./restore/summarise-restore.ts";
export { isPartnerId, isTestPartner, noPartnerId, partnersPath, requirePartner } from "./services/partners-file.ts";
export { type Concern, findConcerns } from "./status/find-concerns.ts";
export { type Reading, readStatus, type Status } from "./status/read-status.ts";
export { type Beat, type PartnerTraffic, readDay, readTraffic } from "./status/read-traffic.ts";
export { addSubscription } from "./subscriptions/add-subscription.ts";
export {
  findSubscription,
  pauseSubscription,
  removeSubscription,
  resumeSubscription,
  rotateSubscription,
} from "./subscriptions/change-subscriptions.ts";
export { describeDelivery, describeFilter, describeTarget } from "./subscriptions/describe-subscription.ts";
export { listSubscriptions, readSubscription, type SubscriptionRow } from "./subscriptions/list-subscriptions.ts";
export type { ShownKeys } from "./subscriptions/make-keys.ts";
export { postTestEvent } from "./subscriptions/post-test-event.ts";
export { type SubscriptionChanges, setSubscription } from "./subscriptions/set-subscription.ts";
export { estimateRemovals } from "./upkeep/estimate-removals.ts";
export { maintainDatabase } from "./upkeep/maintain-database.ts";
export { type Migrated, migrateDatabase } from "./upkeep/migrate-database.ts";
export { rewriteTables } from "./upkeep/rewrite-tables.ts";

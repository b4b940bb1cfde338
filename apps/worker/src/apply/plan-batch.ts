import { randomUUID } from "node:crypto";
import {
  type BookingPlan,
  type BookingState,
  type CreatesAround,
  comparePlaces,
  type FoldWarning,
  findRepeats,
  type KeyUses,
  type Outcome,
  planBooking,
  type RecordedStep,
  type Refolding,
  type Repeats,
  type RevisedEvent,
  type WarningCode,
} from "@booking-events/bookings";
import type { EventEnvelope } from "@booking-events/schema";
import {
  type BookingIdentity,
  boundGuestHashes,
  type ChangeToInsert,
  type EventToInsert,
  firstIdOfBooking,
  type PlannedBooking,
  type StoredBooking,
  startOfLog,
} from "@booking-events/store";
import { type IncomingEvent, nameBooking } from "./incoming-event.ts";

/** A booking that a batch has new events of. */
export interface TouchedBooking extends Readonly<BookingIdentity> {
  /** Of a booking that is new, a new random one. */
  readonly bookingId: string;
  /** The booking before the batch, locked; null: there is none. */
  readonly stored: BookingState | null;
  /** See {@link planBooking}. */
  readonly feedEventId: string | null;
  /** The booking has a content, and no longer its payload. */
  readonly isContentRemoved: boolean;
  /** None of the booking's logged events has an id before this. */
  readonly firstId: string;
  readonly revision: number;
  readonly guestHashes: readonly string[];
  /** By which the stored content is read. */
  readonly defaultCountry: string | null;
  /** Events that are not in the log, in sequence order. */
  readonly newEvents: readonly IncomingEvent[];
}

/** The same, once it is known which events repeat others by their idempotency keys. */
export interface BookingWork extends TouchedBooking {
  readonly repeats: Repeats;
  /** The new events that count, in sequence order. */
  readonly events: readonly IncomingEvent[];
}

export interface RecordedWarning extends Pick<EventEnvelope, "eventId" | "partner" | "kind"> {
  code: WarningCode;
}

export interface BatchPlan {
  /** New events for the log, in sequence order. */
  events: EventToInsert[];
  revised: RevisedEvent[];
  /** Logged events that no longer count. */
  displaced: Repeats["displaced"];
  /** Ids of logged events whose key turns out to belong to an earlier event. */
  reusingInLog: string[];
  newBookings: PlannedBooking[];
  changedBookings: PlannedBooking[];
  changes: ChangeToInsert[];
  /** Deletes by a consumer's reference. The sender may have meant bookings with trip references. */
  consumerDeletes: IncomingEvent[];
  /** By the new event's id. */
  outcomes: Map<string, Outcome>;
  warnings: RecordedWarning[];
}

/**
 * Groups events by their bookings.
 *
 * @param newEvents are not in the log
 * @param stored the bookings that exist, locked
 */
export function groupByBooking(
  newEvents: readonly IncomingEvent[],
  stored: readonly StoredBooking[],
): TouchedBooking[] {
  const storedByName = new Map(stored.map((booking) => [nameBooking(booking), booking]));
  return [...Map.groupBy(newEvents, nameBooking)].map(([name, ofBooking]) => {
    const booking = storedByName.get(name);
    const {
      bookingId = randomUUID(),
      state: stored = null,
      feedEventId = null,
      revision = 0,
      isContentRemoved = false,
      guestHashes = [],
      defaultCountry = null,
    } = booking ?? {};
    const firstId = stored === null ? startOfLog.id : firstIdOfBooking(stored);
    const known = { bookingId, stored, feedEventId, firstId, revision, isContentRemoved, guestHashes, defaultCountry };
    return { ...identityOf(ofBooking[0] as IncomingEvent), ...known, newEvents: ofBooking };
  });
}

const unusedKey: KeyUses = { first: null, same: null };

/** @param uses what the log knows of the events' keys, by the events' ids */
export function leaveOutRepeats(booking: TouchedBooking, uses: ReadonlyMap<string, KeyUses>): BookingWork {
  const repeats = findRepeats(booking.newEvents, ({ id }) => uses.get(id) ?? unusedKey);
  return { ...booking, repeats, events: booking.newEvents.filter(({ id }) => !repeats.duplicates.has(id)) };
}

interface PlannedWork {
  work: BookingWork;
  plan: BookingPlan;
}

/**
 * @param options see {@link planBooking}; a refolding for each booking that has late events
 * @param options.expired events that are older than the log
 * @param options.erased entries of further events, whose bookings have been erased
 */
export function planBatch(
  works: readonly BookingWork[],
  options: {
    refoldings: ReadonlyMap<BookingWork, Refolding>;
    creates: ReadonlyMap<string, CreatesAround>;
    expired: readonly IncomingEvent[];
    erased: readonly EventToInsert[];
    duplicateWindowMs: number;
  },
): BatchPlan {
  const { refoldings, expired, erased, ...others } = options;
  const counting = works.filter(({ events }) => events.length > 0);
  const planned = counting.map((work) => ({
    work,
    plan: planBooking(work, { ...others, refolding: refoldings.get(work) }),
  }));
  const allRepeats = works.map(({ repeats }) => repeats);
  const events = [...toLogEntries(works, planned), ...expired.map(toExpired), ...erased].sort(comparePlaces);
  const isNew = ({ work }: PlannedWork) => work.stored === null;
  return {
    events,
    revised: planned.flatMap(({ plan }) => plan.revised),
    displaced: allRepeats.flatMap(({ displaced }) => displaced),
    reusingInLog: allRepeats.flatMap(({ reusingInLog }) => reusingInLog.map(({ id }) => id)),
    newBookings: planned.filter(isNew).map(toBooking),
    changedBookings: planned.filter((one) => !isNew(one)).map(toBooking),
    changes: planned.flatMap(toChanges),
    consumerDeletes: counting
      .filter(({ referenceKind }) => referenceKind === "consumer")
      .flatMap((work) => work.events.filter(({ kind }) => kind === "delete")),
    outcomes: new Map(events.map(({ id, outcome }) => [id, outcome])),
    warnings: [...works.flatMap(toReuseWarnings), ...planned.flatMap(toFoldWarnings)],
  };
}

function toBooking({ work, plan }: PlannedWork): PlannedBooking {
  const revision = work.revision + plan.changes.length;
  return {
    ...identityOf(work),
    bookingId: work.bookingId,
    state: plan.state,
    revision,
    guestHashes: addGuestHashes(work),
    newContent: findContent(work, plan),
  };
}

/** The same content may be read differently if the partner's country has changed since. */
function findContent(
  { events, isContentRemoved, defaultCountry }: BookingWork,
  { keepsContent, state: { content } }: BookingPlan,
): PlannedBooking["newContent"] {
  const event = events.find(({ id }) => id === content?.eventId);
  const isRead = event === undefined || event.defaultCountry === defaultCountry;
  if (keepsContent && !isContentRemoved && isRead) return "kept";
  return event === undefined ? "logged" : { payload: event.sent, defaultCountry: event.defaultCountry };
}

/** @returns undefined if the booking has all of them already */
function addGuestHashes({ stored, guestHashes, newEvents }: TouchedBooking): readonly string[] | undefined {
  const all = boundGuestHashes([...guestHashes, ...newEvents.flatMap((event) => event.guestHashes)]);
  const isSame = all.length === guestHashes.length && all[0] === guestHashes[0];
  return stored !== null && isSame ? undefined : all;
}

function toChanges({ work, plan }: PlannedWork): ChangeToInsert[] {
  const { bookingId, partner, referenceKind, reference } = work;
  return plan.changes.map((change, index) => {
    const revision = work.revision + index + 1;
    return { bookingId, partner, referenceKind, reference, revision, ...change };
  });
}

function toLogEntries(works: readonly BookingWork[], planned: readonly PlannedWork[]): EventToInsert[] {
  const recorded = new Map(planned.flatMap(({ plan }) => [...plan.recorded]));
  return works.flatMap(({ newEvents, isContentRemoved, repeats: { duplicates, reusing } }) =>
    newEvents.map((event): EventToInsert => {
      const duplicateOf = duplicates.get(event.id) ?? null;
      const step = recorded.get(event.id);
      if (duplicateOf === null && step === undefined)
        throw new Error("Every new event has an outcome: it counts in its booking, or it repeats a key.");
      return {
        ...event,
        // It repeats a content that was removed, and maintenance would not find the booking again.
        payload: duplicateOf !== null && isContentRemoved ? null : event.payload,
        outcome: step?.outcome ?? "duplicate",
        duplicateOf,
        warnings: [...event.sentWarnings, ...(reusing.has(event.id) ? ["key-reused"] : []), ...warningsOf(step)],
        after: step?.after ?? null,
      };
    }),
  );
}

/** Nothing that could be compared with other events, or would have to be removed again, is recorded. */
function toExpired(event: IncomingEvent): EventToInsert {
  const nothing = { payload: null, contentDigest: null, idempotencyKey: null, duplicateOf: null, after: null };
  return { ...event, ...nothing, outcome: "expired", warnings: [] };
}

function toReuseWarnings({ partner, newEvents, repeats: { reusing, reusingInLog } }: BookingWork): RecordedWarning[] {
  const reusingNow = reusing.size === 0 ? [] : newEvents.filter(({ id }) => reusing.has(id));
  return [...reusingNow, ...reusingInLog].map(({ id, kind }) => toWarning({ id, kind, partner }, "key-reused"));
}

function toFoldWarnings({ work, plan: { recorded } }: PlannedWork): RecordedWarning[] {
  return work.events.flatMap((event) => warningsOf(recorded.get(event.id)).map((code) => toWarning(event, code)));
}

function warningsOf(step: RecordedStep | undefined): FoldWarning[] {
  return step?.warning ? [step.warning] : [];
}

export function toWarning(
  { id, partner, kind }: Pick<IncomingEvent, "id" | "partner" | "kind">,
  code: WarningCode,
): RecordedWarning {
  return { eventId: id, partner, kind, code };
}

function identityOf({ bookingKey, partner, referenceKind, reference }: BookingIdentity): BookingIdentity {
  return { bookingKey, partner, referenceKind, reference };
}

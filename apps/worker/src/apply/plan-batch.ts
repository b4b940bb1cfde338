import {
  comparePlaces,
  type KeySettlement,
  type KeyUses,
  type Outcome,
  settleKeys,
  type WarningCode,
} from "@booking-events/bookings";
import type { EventKind } from "@booking-events/schema";
import type {
  BookingRow,
  BookingToSave,
  ChangeToInsert,
  CreatesAround,
  EventToInsert,
  RevisedEvent,
} from "@booking-events/store";
import { type IncomingEvent, nameBooking } from "./incoming-event.ts";
import { type BookingPlan, type BookingWork, planBooking, type TouchedBooking } from "./plan-booking.ts";
import type { Refolding } from "./refold-booking.ts";

export interface RecordedWarning {
  eventId: string;
  partner: string;
  kind: EventKind;
  code: WarningCode;
}

/** What has to be written for one batch. */
export interface BatchPlan {
  /** New events in the log, in the order of their sequences. */
  events: EventToInsert[];
  /** Events in the log of which something else is recorded now. */
  revised: RevisedEvent[];
  /** Events in the log that count no longer. */
  displaced: KeySettlement["displaced"];
  /** Ids of events in the log whose key turns out to be another event's. */
  reusingInLog: string[];
  newBookings: BookingToSave[];
  changedBookings: BookingToSave[];
  changes: ChangeToInsert[];
  /** Deletes by a consumer's reference: they may have been meant for bookings with trip references. */
  consumerDeletes: IncomingEvent[];
  /** Of each new event, by its id. */
  outcomes: Map<string, Outcome>;
  warnings: RecordedWarning[];
}

/**
 * The bookings that a batch touches, with the events that are new to the log.
 *
 * @param rows the bookings that exist, locked
 * @param applied what stands in the log already, by id
 */
export function groupByBooking(
  events: readonly IncomingEvent[],
  rows: readonly BookingRow[],
  applied: ReadonlyMap<string, unknown>,
): TouchedBooking[] {
  const rowOf = new Map(rows.map((row) => [nameBooking(row), row]));
  const newEvents = events.filter(({ id }) => !applied.has(id));
  return [...Map.groupBy(newEvents, nameBooking)].map(([name, ofBooking]) => {
    const { bookingKey, partner, referenceKind, reference } = ofBooking[0] as IncomingEvent;
    return { bookingKey, partner, referenceKind, reference, row: rowOf.get(name) ?? null, newEvents: ofBooking };
  });
}

const unusedKey: KeyUses = { first: null, same: null };

/** @param uses what the log knows of the events' keys, by the events' ids */
export function settleBooking(booking: TouchedBooking, uses: ReadonlyMap<string, KeyUses>): BookingWork {
  const settlement = settleKeys(booking.newEvents, ({ id }) => uses.get(id) ?? unusedKey);
  return { ...booking, settlement, events: booking.newEvents.filter(({ id }) => !settlement.duplicates.has(id)) };
}

/**
 * @param refoldings of the bookings that have late events
 * @param creates as for {@link planBooking}
 */
export function planBatch(
  works: readonly BookingWork[],
  refoldings: ReadonlyMap<BookingWork, Refolding>,
  creates: ReadonlyMap<string, CreatesAround>,
  duplicateWindowMs: number,
): BatchPlan {
  const counting = works.filter(({ events }) => events.length > 0);
  const plans = counting.map((work) => planBooking(work, refoldings.get(work), creates, duplicateWindowMs));
  const settlements = works.map(({ settlement }) => settlement);
  const events = toLogEntries(works, plans);
  const isNew = ({ work }: BookingPlan) => work.row === null;
  return {
    events,
    revised: plans.flatMap(({ revised }) => revised),
    displaced: settlements.flatMap(({ displaced }) => displaced),
    reusingInLog: settlements.flatMap(({ reusingInLog }) => reusingInLog.map(({ id }) => id)),
    newBookings: plans.filter(isNew).map(({ booking }) => booking),
    changedBookings: plans.filter((plan) => !isNew(plan)).map(({ booking }) => booking),
    changes: plans.flatMap(({ changes }) => changes),
    consumerDeletes: counting
      .filter(({ referenceKind }) => referenceKind === "consumer")
      .flatMap((work) => work.events.filter(({ kind }) => kind === "delete")),
    outcomes: new Map(events.map(({ id, outcome }) => [id, outcome])),
    warnings: works.flatMap(toReuseWarnings),
  };
}

function toLogEntries(works: readonly BookingWork[], plans: readonly BookingPlan[]): EventToInsert[] {
  const recorded = new Map(plans.flatMap((plan) => [...plan.recorded]));
  return works
    .flatMap(({ newEvents, settlement: { duplicates, reusing } }) =>
      newEvents.map((event): EventToInsert => {
        const duplicateOf = duplicates.get(event.id) ?? null;
        const step = recorded.get(event.id);
        if (duplicateOf === null && step === undefined)
          throw new Error("Each new event has an outcome: it counts in a booking or repeats a key.");
        return {
          ...event,
          contentDigest: Buffer.from(event.contentDigest, "hex"),
          outcome: step?.outcome ?? "duplicate",
          duplicateOf,
          warnings: reusing.has(event.id) ? ["key-reused"] : [],
          after: step?.after ?? null,
        };
      }),
    )
    .sort(comparePlaces);
}

function toReuseWarnings({
  partner,
  newEvents,
  settlement: { reusing, reusingInLog },
}: BookingWork): RecordedWarning[] {
  const reusingNow = reusing.size === 0 ? [] : newEvents.filter(({ id }) => reusing.has(id));
  return [...reusingNow, ...reusingInLog].map(({ id, kind }) => toWarning({ id, kind, partner }, "key-reused"));
}

export function toWarning(
  { id, partner, kind }: Pick<IncomingEvent, "id" | "partner" | "kind">,
  code: WarningCode,
): RecordedWarning {
  return { eventId: id, partner, kind, code };
}

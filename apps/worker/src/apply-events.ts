import type { EventEnvelope } from "@booking-events/schema";
import {
  appendChanges,
  deleteBookings,
  findBookingKeys,
  findEarlierCreates,
  findProcessed,
  insertBookings,
  insertEvents,
  inTransaction,
  lockBookings,
  type Outcome,
  type Queryable,
  readHistories,
  settleAll,
  updateBookings,
  updateOutcomes,
} from "@booking-events/store";
import type { Pool } from "pg";
import { type IncomingEvent, toIncomingEvent } from "./incoming-event.ts";
import { type BookingPlan, type BookingWork, needsHistory, planBooking } from "./plan-booking.ts";
import { type KeySettlement, settleIdempotencyKeys } from "./settle-idempotency-keys.ts";

export interface ApplyOptions {
  /** How far apart two events may have been received to count as repetitions of each other. */
  duplicateWindowMs: number;
}

/** Each lost race means that another batch got through, so this many in a row do not happen by chance. */
const maxRaces = 20;

/** Another transaction inserted one of the events or bookings first. Nothing was written; the next try finds it. */
class Race extends Error {
  override name = "Race";
}

/**
 * Applies events in one transaction: the log, the bookings and the feed of changes agree whenever anyone looks.
 *
 * The same event again changes nothing, and events may come in any order and in any grouping: each takes its place by
 * its sequence. All locks are taken in one order (idempotency keys, existing bookings, new events, new bookings, the
 * feed; each in the order of its keys), so that concurrent batches wait for each other and never deadlock.
 *
 * @returns the outcome of each event by its id; of one that was applied before, the outcome that stands in the log
 * @throws what PostgreSQL or its connection throws. Nothing was applied then, unless the connection broke during the
 *   commit: apply the events again
 */
export async function applyEvents(
  pool: Pool,
  envelopes: EventEnvelope[],
  options: ApplyOptions,
): Promise<Map<string, Outcome>> {
  const distinct = new Map(envelopes.map((envelope) => [envelope.eventId, envelope]));
  const events = [...distinct.values()].map(toIncomingEvent).sort((a, b) => a.sequence - b.sequence);
  for (let races = 0; ; races += 1) {
    try {
      return await inTransaction(pool, (client) => applyInTransaction(client, events, options));
    } catch (error) {
      if (!(error instanceof Race) || races >= maxRaces) throw error;
    }
  }
}

async function applyInTransaction(
  client: Queryable,
  events: IncomingEvent[],
  options: ApplyOptions,
): Promise<Map<string, Outcome>> {
  const settlement = await settleIdempotencyKeys(client, events);
  const works = await groupByBooking(client, events, settlement);
  const keys = [...works.values()].map(({ bookingKey }) => bookingKey);
  const ids = events.map(({ id }) => id);
  // The locks first: until they are held, another transaction may be applying the same events.
  const [rows, outcomes] = await settleAll([lockBookings(client, keys), findProcessed(client, ids)]);
  for (const row of rows) {
    const work = works.get(nameBooking(row));
    if (work !== undefined) work.row = row;
  }
  const newEvents = events.filter(({ id }) => !outcomes.has(id));
  for (const work of works.values()) work.events = work.events.filter(({ id }) => !outcomes.has(id));

  const plans = await planBookings(client, [...works.values()], options);
  for (const plan of plans) for (const [id, outcome] of plan.outcomes) outcomes.set(id, outcome);
  for (const { id } of newEvents) if (settlement.keyDuplicates.has(id)) outcomes.set(id, "duplicate");

  // In this order. The events first: bookings get their payloads from them. And if another transaction is applying the
  // same event to a booking that is new to both, this is where they meet. The feed last: it lets one transaction through
  // at a time.
  await settleAll([
    ...writeLog(client, newEvents, outcomes, settlement, plans),
    ...writeBookings(client, plans),
    ...writeChanges(client, plans),
  ]);
  return outcomes;
}

/** The bookings that the batch touches, with the events that count. */
async function groupByBooking(
  client: Queryable,
  events: IncomingEvent[],
  { keyDuplicates, displaced }: KeySettlement,
): Promise<Map<string, BookingWork>> {
  const works = new Map<string, BookingWork & { displacedIds: Set<string> }>();
  const workOn = ({ bookingKey, partner, reference }: Pick<BookingWork, "bookingKey" | "partner" | "reference">) => {
    const name = nameBooking({ bookingKey });
    const work = works.get(name) ?? {
      ...{ bookingKey, partner, reference },
      row: null,
      events: [],
      displacedIds: new Set(),
    };
    works.set(name, work);
    return work;
  };
  for (const event of events) if (!keyDuplicates.has(event.id)) workOn(event).events.push(event);
  if (displaced.size > 0) {
    for (const event of await findBookingKeys(client, [...displaced.keys()])) workOn(event).displacedIds.add(event.id);
  }
  return works;
}

async function planBookings(
  client: Queryable,
  works: BookingWork[],
  { duplicateWindowMs }: ApplyOptions,
): Promise<BookingPlan[]> {
  const refolded = works.filter(needsHistory).map(({ bookingKey }) => bookingKey);
  const repeatable = works
    .filter((work) => work.row !== null && !needsHistory(work))
    .flatMap(({ events }) => events.filter(({ kind, hasIdempotencyKey }) => kind === "create" && !hasIdempotencyKey));
  const [logged, earlier] = await settleAll([
    refolded.length === 0 ? Promise.resolve([]) : readHistories(client, refolded),
    repeatable.length === 0 ? Promise.resolve([]) : findEarlierCreates(client, repeatable.map(toCreateKey)),
  ]);
  const histories = Map.groupBy(logged, nameBooking);
  const creates = Map.groupBy(earlier, nameBooking);
  return works
    .filter(({ events, displacedIds }) => events.length > 0 || displacedIds.size > 0)
    .map((work) => {
      const name = nameBooking(work);
      const earlierCreates = new Map(
        creates.get(name)?.map(({ contentDigest, sequence }) => [contentDigest.toString("hex"), sequence]),
      );
      return planBooking(work, histories.get(name) ?? [], earlierCreates, duplicateWindowMs);
    });
}

function writeLog(
  client: Queryable,
  newEvents: IncomingEvent[],
  outcomes: Map<string, Outcome>,
  { keyDuplicates, displaced }: KeySettlement,
  plans: BookingPlan[],
): Promise<void>[] {
  const rows = newEvents.map((event) => ({
    ...event,
    contentDigest: Buffer.from(event.contentDigest, "hex"),
    outcome: outcomeOf(event.id, outcomes),
    duplicateOf: keyDuplicates.get(event.id) ?? null,
  }));
  const revised = [
    ...plans.flatMap((plan) => [...plan.revisedOutcomes].map(([id, outcome]) => ({ id, outcome, duplicateOf: null }))),
    ...[...displaced].map(([id, duplicateOf]) => ({ id, outcome: "duplicate" as const, duplicateOf })),
  ];
  return [
    ...(rows.length > 0 ? [orRace(insertEvents(client, rows))] : []),
    ...(revised.length > 0 ? [updateOutcomes(client, revised)] : []),
  ];
}

function writeBookings(client: Queryable, plans: BookingPlan[]): Promise<void>[] {
  const bookings = plans.flatMap(({ booking, work }) =>
    booking === null ? [] : [{ isNew: work.row === null, booking }],
  );
  const inserted = bookings.filter(({ isNew }) => isNew).map(({ booking }) => booking);
  const updated = bookings.filter(({ isNew }) => !isNew).map(({ booking }) => booking);
  const emptied = plans
    .filter(({ booking, work }) => booking === null && work.row !== null)
    .map(({ work }) => work.bookingKey);
  return [
    ...(inserted.length > 0 ? [orRace(insertBookings(client, inserted))] : []),
    ...(updated.length > 0 ? [updateBookings(client, updated)] : []),
    ...(emptied.length > 0 ? [deleteBookings(client, emptied)] : []),
  ];
}

function writeChanges(client: Queryable, plans: BookingPlan[]): Promise<void>[] {
  const changes = plans.flatMap((plan) => plan.changes);
  return changes.length > 0 ? [appendChanges(client, changes)] : [];
}

async function orRace(isFirst: Promise<boolean>): Promise<void> {
  if (!(await isFirst)) throw new Race();
}

function outcomeOf(id: string, outcomes: Map<string, Outcome>): Outcome {
  const outcome = outcomes.get(id);
  if (outcome === undefined) throw new Error("Each new event has an outcome: it counts in a booking or repeats a key.");
  return outcome;
}

function nameBooking({ bookingKey }: { bookingKey: Buffer }): string {
  return bookingKey.toString("hex");
}

function toCreateKey({ bookingKey, contentDigest }: IncomingEvent): { bookingKey: Buffer; contentDigest: Buffer } {
  return { bookingKey, contentDigest: Buffer.from(contentDigest, "hex") };
}

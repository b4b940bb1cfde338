import {
  comparePlaces,
  type KeySettlement,
  type KeyUses,
  type Outcome,
  settleKeys,
  type WarningCode,
} from "@booking-events/bookings";
import { gatherPerTurn } from "@booking-events/queue";
import type { EventEnvelope, EventKind } from "@booking-events/schema";
import {
  appendChanges,
  type CreatesAround,
  findCreatesAround,
  findKeyUses,
  findLockedBookings,
  findProcessed,
  insertBookings,
  insertEvents,
  inTransaction,
  type LogPage,
  type LogRange,
  lockBookings,
  markDuplicates,
  markReferenceKind,
  markReusing,
  type Queryable,
  RollBack,
  readLog,
  reviseEvents,
  setLockTimeout,
  settleAll,
  toState,
  updateBookings,
} from "@booking-events/store";
import { DatabaseError, type Pool } from "pg";
import { type IncomingEvent, toIncomingEvent } from "./incoming-event.ts";
import {
  type BookingPlan,
  type BookingWork,
  isRepeatable,
  lateEvents,
  needsRefolding,
  planBooking,
  toRevisedEvent,
} from "./plan-booking.ts";
import { type Refolding, refoldBooking, TooMuchHistory } from "./refold-booking.ts";

export interface ApplyOptions {
  /** How far apart two events may have been received to count as repetitions of each other. */
  duplicateWindowMs: number;
  /**
   * The events are of one booking, and no others wait for them: the transaction may wait for the booking's lock, and
   * read as much of its log as it takes. Default: false.
   */
  isAlone?: boolean;
  /** The transaction may wait for bookings that others have locked, for a second each. Default: as `isAlone`. */
  waitsForLocks?: boolean;
  /** Told of each warning once it stands in the log. */
  onWarning?: (warning: RecordedWarning) => void;
}

export interface RecordedWarning {
  eventId: string;
  partner: string;
  kind: EventKind;
  code: WarningCode;
}

/** Each lost race means that another batch got through, so this many in a row do not happen by chance. */
const maxRaces = 20;
/** Events of one booking's log, and of all in one transaction, that are read while the events of other bookings wait. */
const maxHistoryTogether = 2_000;
const maxHistoryInTransaction = 20_000;
/** For the lock of a booking. Other workers hold it for one transaction each. */
const lockTimeoutMs = 1_000;

const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";
const serializationFailure = "40001";

/** Another transaction inserted one of the events or bookings first. Nothing was written; the next try finds it. */
class Race extends RollBack {
  override name = "Race";
}

/** Some of the bookings are to be applied alone. Nothing was written; the others are tried again without them. */
class LeftOut extends RollBack {
  override name = "LeftOut";
  /** By {@link nameBooking}. */
  readonly bookings: ReadonlySet<string>;

  constructor(bookings: BookingWork[]) {
    super("Some of the bookings are to be applied alone.");
    this.bookings = new Set(bookings.map(nameBooking));
  }
}

/**
 * Applies events in one transaction: the log, the bookings and the feed of changes agree whenever anyone looks.
 *
 * The same event again changes nothing, and events may come in any order and in any grouping: each takes its place by
 * its sequence. All locks are taken in one order (existing bookings, new events, new bookings, the feed; events by
 * their sequences, bookings by their keys), so that concurrent batches wait for each other and never deadlock.
 *
 * Nobody waits for a booking that another transaction has locked, or that needs much of its history: its events are
 * left out, to be applied alone.
 *
 * @returns the outcome of each event by its id; of one that was applied before, the outcome that stands in the log.
 *   Those that were left out have none
 * @throws what PostgreSQL or its connection throws. Nothing was applied then, unless the connection broke during the
 *   commit: apply the events again
 */
export async function applyEvents(
  pool: Pool,
  envelopes: EventEnvelope[],
  options: ApplyOptions,
): Promise<Map<string, Outcome>> {
  const distinct = new Map(envelopes.map((envelope) => [envelope.eventId, envelope]));
  let events = [...distinct.values()].map(toIncomingEvent).sort(comparePlaces);
  let waitsForLocks = options.waitsForLocks ?? options.isAlone === true;
  for (let races = 0; events.length > 0; ) {
    try {
      const applied = await inTransaction(pool, (client) =>
        applyInTransaction(client, events, { ...options, waitsForLocks }),
      );
      if (options.onWarning !== undefined) applied.warnings.forEach(options.onWarning);
      return applied.outcomes;
    } catch (error) {
      if (error instanceof LeftOut) {
        const others = events.filter((event) => !error.bookings.has(nameBooking(event)));
        if (others.length === events.length) throw error;
        events = others;
      } else if (!waitsForLocks && isLockTimeout(error)) {
        const locked = await inTransaction(pool, (client) => findLockedBookings(client, keysOf(events)));
        events = events.filter((event) => !locked.some((key) => key.equals(event.bookingKey)));
        // None is: it was free again by then.
        waitsForLocks = locked.length === 0;
      } else {
        races += 1;
        const isRace = error instanceof Race || isDatabaseError(error, deadlockDetected, serializationFailure);
        if (!isRace || races > maxRaces) throw error;
      }
    }
  }
  return new Map();
}

function keysOf(events: IncomingEvent[]): Buffer[] {
  return events.map((event) => event.bookingKey);
}

/** Another transaction kept a lock for longer than this one waited. */
export function isLockTimeout(error: unknown): boolean {
  return isDatabaseError(error, lockNotAvailable);
}

function isDatabaseError(error: unknown, ...codes: string[]): boolean {
  return error instanceof DatabaseError && error.code !== undefined && codes.includes(error.code);
}

interface TransactionOptions extends ApplyOptions {
  waitsForLocks: boolean;
}

interface Applied {
  outcomes: Map<string, Outcome>;
  warnings: RecordedWarning[];
}

async function applyInTransaction(
  client: Queryable,
  events: IncomingEvent[],
  options: TransactionOptions,
): Promise<Applied> {
  const works = groupByBooking(events);
  const keys = [...works.values()].map((work) => work.bookingKey);
  const ids = events.map(({ id }) => id);
  // The locks first: until they are held, another transaction may be applying the same events.
  const [rows, outcomes] = await settleAll([lockAll(client, keys, options), findProcessed(client, ids)]);
  for (const row of rows) {
    const work = works.get(nameBooking(row));
    if (work !== undefined) work.row = row;
  }
  const newEvents = events.filter(({ id }) => !outcomes.has(id));
  for (const work of works.values()) work.events = work.events.filter(({ id }) => !outcomes.has(id));

  const { settlement, plans } = await planBookings(client, [...works.values()], options);
  for (const plan of plans) for (const [id, { outcome }] of plan.recorded) outcomes.set(id, outcome);
  for (const { duplicates } of settlement.values()) for (const id of duplicates.keys()) outcomes.set(id, "duplicate");

  // In this order. The events first: bookings get their payloads from them. And if another transaction is applying the
  // same event to a booking that is new to both, this is where they meet. The feed last: it lets one transaction through
  // at a time.
  const misdirected = new Set<string>();
  await settleAll([
    ...writeLog(client, newEvents, outcomes, settlement, plans),
    ...writeBookings(client, plans),
    ...markMisdirected(client, plans, misdirected),
    ...writeChanges(client, plans),
  ]);
  return { outcomes, warnings: collectWarnings(settlement, newEvents, misdirected) };
}

/** From here on the connection's own limit for locks is in force again. */
async function lockAll(client: Queryable, bookingKeys: Buffer[], { waitsForLocks }: TransactionOptions) {
  const [, rows] = await settleAll([
    setLockTimeout(client, lockTimeoutMs),
    lockBookings(client, bookingKeys, waitsForLocks ? "wait" : "fail"),
    setLockTimeout(client, "default"),
  ]);
  return rows;
}

/** The bookings that the batch touches, with all of its events. */
function groupByBooking(events: IncomingEvent[]): Map<string, BookingWork> {
  const works = new Map<string, BookingWork>();
  for (const event of events) {
    const { bookingKey, partner, referenceKind, reference } = event;
    const name = nameBooking(event);
    const work = works.get(name) ?? {
      bookingKey,
      partner,
      referenceKind,
      reference,
      row: null,
      events: [],
      displaced: [],
    };
    works.set(name, work);
    work.events.push(event);
  }
  return works;
}

type Settlement = Map<BookingWork, KeySettlement>;

async function planBookings(
  client: Queryable,
  works: BookingWork[],
  options: TransactionOptions,
): Promise<{ settlement: Settlement; plans: BookingPlan[] }> {
  const [uses, creates] = await settleAll([findUses(client, works), findCreates(client, works)]);
  const settlement: Settlement = new Map(
    works.map((work) => [work, settleKeys(work.events, ({ id }) => uses.get(id) ?? unusedKey)]),
  );
  for (const [work, { duplicates, displaced }] of settlement) {
    work.events = work.events.filter(({ id }) => !duplicates.has(id));
    work.displaced = displaced;
  }
  const touched = works.filter(({ events }) => events.length > 0);
  const refoldings = await refoldBookings(client, touched.filter(needsRefolding), creates, options);
  const plans = touched.map((work) => planBooking(work, refoldings.get(work), creates, options.duplicateWindowMs));
  return { settlement, plans };
}

const unusedKey: KeyUses = { first: null, same: null };

/** Of each event with an idempotency key, what its booking's log knows of the key, by its id. A new booking has no log. */
async function findUses(client: Queryable, works: BookingWork[]): Promise<Map<string, KeyUses>> {
  const keyed = works.flatMap(({ row, events }) =>
    row === null ? [] : events.filter(({ hasIdempotencyKey }) => hasIdempotencyKey),
  );
  if (keyed.length === 0) return new Map();
  const uses = await findKeyUses(client, keyed.map(withDigest));
  return new Map(keyed.map(({ id }, index) => [id, uses[index] as KeyUses]));
}

/** Of each create that can repeat or be repeated, the creates around it, by its id. A new booking has none. */
async function findCreates(client: Queryable, works: BookingWork[]): Promise<Map<string, CreatesAround>> {
  const repeatable = works.flatMap(({ row, events }) => (row === null ? [] : events.filter(isRepeatable)));
  if (repeatable.length === 0) return new Map();
  const around = await findCreatesAround(client, repeatable.map(withDigest));
  return new Map(repeatable.map(({ id }, index) => [id, around[index] as CreatesAround]));
}

/** All of them at once: what they read in one turn of the event loop is one query. */
async function refoldBookings(
  client: Queryable,
  works: BookingWork[],
  creates: ReadonlyMap<string, CreatesAround>,
  { duplicateWindowMs, isAlone }: TransactionOptions,
): Promise<Map<BookingWork, Refolding>> {
  const readTogether = gatherPerTurn<LogRange, LogPage>((ranges) => readLog(client, ranges));
  let eventsRead = 0;
  const read = async (range: LogRange) => {
    const page = await readTogether(range);
    eventsRead += page.events.length;
    if (!isAlone && eventsRead > maxHistoryInTransaction) throw new TooMuchHistory(range.bookingKey);
    return page;
  };
  const refold = async (work: BookingWork): Promise<[BookingWork, Refolding][]> => {
    if (work.row === null) return [];
    const refolding = await refoldBooking({
      bookingKey: work.bookingKey,
      stored: toState(work.row),
      late: lateEvents(work).map((event) => ({ event, creates: creates.get(event.id) })),
      displaced: work.displaced,
      duplicateWindowMs,
      maxEvents: isAlone ? undefined : maxHistoryTogether,
      read,
      revise: (steps) => reviseEvents(client, steps.map(toRevisedEvent)),
    });
    return [[work, refolding]];
  };
  const refoldings = await Promise.allSettled(works.map(refold));
  const tooLong = works.filter((_, index) => refoldings[index] !== undefined && isTooLong(refoldings[index]));
  if (tooLong.length > 0) throw new LeftOut(tooLong);
  return new Map(
    refoldings.flatMap((refolding) => {
      if (refolding.status === "rejected") throw refolding.reason;
      return refolding.value;
    }),
  );
}

function isTooLong(refolding: PromiseSettledResult<unknown>): boolean {
  return refolding.status === "rejected" && refolding.reason instanceof TooMuchHistory;
}

function writeLog(
  client: Queryable,
  newEvents: IncomingEvent[],
  outcomes: Map<string, Outcome>,
  settlement: Settlement,
  plans: BookingPlan[],
): Promise<void>[] {
  const states = new Map(plans.flatMap(({ recorded }) => [...recorded].map(([id, { after }]) => [id, after])));
  const settlements = [...settlement.values()];
  const duplicateOf = new Map(settlements.flatMap(({ duplicates }) => [...duplicates]));
  const reusing = new Set(settlements.flatMap((ofBooking) => [...ofBooking.reusing]));
  const rows = newEvents.map((event) => ({
    ...withDigest(event),
    outcome: outcomeOf(event.id, outcomes),
    duplicateOf: duplicateOf.get(event.id) ?? null,
    warnings: reusing.has(event.id) ? ["key-reused" as const] : [],
    after: states.get(event.id) ?? null,
  }));
  const revised = plans.flatMap((plan) => plan.revised);
  const displaced = settlements.flatMap((ofBooking) => ofBooking.displaced);
  const reusingInLog = settlements.flatMap((ofBooking) => ofBooking.reusingInLog.map(({ id }) => id));
  return [
    ...(rows.length > 0 ? [orRace(insertEvents(client, rows))] : []),
    ...(revised.length > 0 ? [reviseEvents(client, revised)] : []),
    ...(displaced.length > 0 ? [markDuplicates(client, displaced)] : []),
    ...(reusingInLog.length > 0 ? [markReusing(client, reusingInLog)] : []),
  ];
}

/** A delete that may have been meant for bookings with trip references. It needs the bookings as they are written. */
function markMisdirected(client: Queryable, plans: BookingPlan[], misdirected: Set<string>): Promise<void>[] {
  const deletes = plans
    .filter(({ work }) => work.referenceKind === "consumer")
    .flatMap(({ work }) => work.events.filter(({ kind }) => kind === "delete").map(({ id }) => id));
  if (deletes.length === 0) return [];
  const marking = async () => {
    for (const id of await markReferenceKind(client, deletes)) misdirected.add(id);
  };
  return [marking()];
}

function collectWarnings(
  settlement: Settlement,
  newEvents: IncomingEvent[],
  misdirected: ReadonlySet<string>,
): RecordedWarning[] {
  const settlements = [...settlement.values()];
  const reusing = new Set(settlements.flatMap((ofBooking) => [...ofBooking.reusing]));
  const reused = newEvents
    .filter(({ id }) => reusing.has(id))
    .map(({ id, partner, kind }) => ({ eventId: id, partner, kind, code: "key-reused" as const }));
  const reusedInLog = [...settlement].flatMap(([{ partner }, { reusingInLog }]) =>
    reusingInLog.map(({ id, kind }) => ({ eventId: id, partner, kind, code: "key-reused" as const })),
  );
  const ofOtherKind = newEvents
    .filter(({ id }) => misdirected.has(id))
    .map(({ id, partner, kind }) => ({ eventId: id, partner, kind, code: "reference-kind" as const }));
  return [...reused, ...reusedInLog, ...ofOtherKind];
}

function writeBookings(client: Queryable, plans: BookingPlan[]): Promise<void>[] {
  const inserted = plans.filter(({ work }) => work.row === null).map(({ booking }) => booking);
  const updated = plans.filter(({ work }) => work.row !== null).map(({ booking }) => booking);
  return [
    ...(inserted.length > 0 ? [orRace(insertBookings(client, inserted))] : []),
    ...(updated.length > 0 ? [updateBookings(client, updated)] : []),
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

function withDigest(event: IncomingEvent): Omit<IncomingEvent, "contentDigest"> & { contentDigest: Buffer } {
  return { ...event, contentDigest: Buffer.from(event.contentDigest, "hex") };
}

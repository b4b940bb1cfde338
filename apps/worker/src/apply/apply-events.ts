import { comparePlaces, type Outcome } from "@booking-events/bookings";
import type { Span } from "@booking-events/runtime";
import type { EventEnvelope } from "@booking-events/schema";
import {
  type DigestKey,
  type EventToInsert,
  findErased,
  findLockedBookings,
  findProcessed,
  inPreparedTransaction,
  inTransaction,
  lockBookings,
  openDigestKey,
  type Queryable,
  readLogHorizon,
  type StoredBooking,
  setLockTimeout,
  settleAll,
  staleStatement,
  toErasedEntry,
} from "@booking-events/store";
import { DatabaseError, type Pool } from "pg";
import { type IncomingEvent, nameBooking, toIncomingEvent } from "./incoming-event.ts";
import { groupByBooking, leaveOutRepeats, planBatch, type RecordedWarning, toWarning } from "./plan-batch.ts";
import { readHistory } from "./read-history.ts";
import { LeftOut, refoldBookings } from "./refold-bookings.ts";
import { PhaseSpans } from "./trace-batches.ts";
import { Race, writeBatch } from "./write-batch.ts";

export interface ApplyMode {
  /**
   * The events are of one booking, and no other events wait for them. So the transaction may wait for the booking's
   * lock, and read its whole log.
   */
  isAlone: boolean;
  /** The transaction waits for locked bookings, for a second each. Otherwise their events have no outcome. */
  waitsForLocks: boolean;
}

/** Default mode: not alone. An event that is alone waits for locks. */
export interface ApplyOptions extends Partial<ApplyMode> {
  /** Default: the key in the database. */
  digestKey?: DigestKey;
  /** The id of the database that the events are for. Default: any. */
  database?: string;
  /** An event received later than this after another one does not repeat it. */
  duplicateWindowMs: number;
  /** Called with each warning once it is in the log. */
  onWarning?: (warning: RecordedWarning) => void;
  batch?: Span | undefined;
}

/** Each lost race means that another batch was applied, so this many in a row are no coincidence. */
const maxRaces = 20;
/** For one booking. Other workers hold its lock for one transaction. */
const lockTimeoutMs = 1_000;

const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";
const serializationFailure = "40001";

/**
 * Applies events in one transaction, so the log, the bookings and the feed always agree.
 *
 * An event that was applied before changes nothing. Events may come in any order and in any batches, since each takes
 * its place by its sequence. All transactions take their locks in the same order (existing bookings, new events, new
 * bookings, the feed; events by sequence, bookings by key), so concurrent batches wait for each other and never
 * deadlock.
 *
 * Other events don't wait for a booking that another transaction has locked, or that needs much of its history. Its
 * events are left out, and must be applied alone.
 *
 * @returns the outcome of each event, by its id. An event that was applied before has the outcome in the log. Events
 *   that were left out have none
 * @throws what PostgreSQL or its connection throws. Then nothing was applied, unless the connection broke during the
 *   commit. Apply the events again
 */
export async function applyEvents(
  pool: Pool,
  envelopes: EventEnvelope[],
  options: ApplyOptions,
): Promise<Map<string, Outcome>> {
  const distinct = new Map(envelopes.map((envelope) => [envelope.eventId, envelope]));
  const digestKey = options.digestKey ?? (await openDigestKey(pool, undefined));
  let events = [...distinct.values()].map((envelope) => toIncomingEvent(envelope, digestKey)).sort(comparePlaces);
  let waitsForLocks = options.waitsForLocks ?? options.isAlone === true;
  const phases = new PhaseSpans(options.batch);
  for (let races = 0; events.length > 0; ) {
    try {
      phases.enter("begin");
      const applied = await inPreparedTransaction(pool, (client) =>
        applyInTransaction(client, events, { ...options, digestKey, waitsForLocks, phases }),
      );
      phases.leave();
      if (options.onWarning !== undefined) applied.warnings.forEach(options.onWarning);
      return applied.outcomes;
    } catch (error) {
      phases.fail(error);
      if (error instanceof LeftOut) {
        const others = events.filter((event) => !error.bookings.has(nameBooking(event)));
        if (others.length === events.length) throw error;
        events = others;
      } else if (!waitsForLocks && isLockTimeout(error)) {
        const locked = await inTransaction(pool, (client) => findLockedBookings(client, keysOf(events)));
        events = events.filter((event) => !locked.some((key) => key.equals(event.bookingKey)));
        // None is locked any more, so the next try may wait.
        waitsForLocks = locked.length === 0;
      } else {
        races += 1;
        const isRace =
          error instanceof Race || isDatabaseError(error, deadlockDetected, serializationFailure, ...staleStatement);
        if (!isRace || races > maxRaces) throw error;
      }
    }
  }
  return new Map();
}

function keysOf(events: IncomingEvent[]): Buffer[] {
  return [...new Map(events.map((event) => [nameBooking(event), event.bookingKey])).values()];
}

export function isLockTimeout(error: unknown): boolean {
  return isDatabaseError(error, lockNotAvailable);
}

function isDatabaseError(error: unknown, ...codes: string[]): boolean {
  return error instanceof DatabaseError && error.code !== undefined && codes.includes(error.code);
}

interface Applied {
  outcomes: Map<string, Outcome>;
  warnings: RecordedWarning[];
}

/** The phases of a transaction: lock, read, plan, write. */
async function applyInTransaction(
  client: Queryable,
  all: IncomingEvent[],
  options: ApplyOptions & { digestKey: DigestKey; waitsForLocks: boolean; phases: PhaseSpans },
): Promise<Applied> {
  const { digestKey, duplicateWindowMs, phases } = options;
  phases.enter("lock");
  const { stored, applied, horizon } = await lock(client, all, options);
  phases.enter("read");
  const newEvents = all.filter(({ id }) => !applied.has(id));
  // Before expired events are found, since those are recorded with their references.
  const { erased, events } = await separateErased(client, newEvents, { digestKey, stored });
  const isExpired = ({ sequence }: IncomingEvent) => horizon !== null && sequence < horizon.getTime() * 1_000;
  const { expired = [], current = [] } = Object.groupBy(events, (event) => (isExpired(event) ? "expired" : "current"));
  const bookings = groupByBooking(current, stored);
  const { uses, creates } = await readHistory(client, bookings, options);
  const works = bookings.map((booking) => leaveOutRepeats(booking, uses));
  const refoldings = await refoldBookings(client, works, creates, options);
  phases.leave();
  const plan = planBatch(works, { refoldings, creates, expired, erased, duplicateWindowMs });
  phases.enter("write");
  const misdirected = await writeBatch(client, plan, digestKey);
  phases.enter("commit");
  const likelyMistakes = plan.consumerDeletes.filter(({ id }) => misdirected.has(id));
  return {
    outcomes: new Map([...applied, ...plan.outcomes]),
    warnings: [...plan.warnings, ...likelyMistakes.map((event) => toWarning(event, "reference-kind"))],
  };
}

/** @returns the bookings that exist, the outcomes of events that are in the log already, and where the log begins */
async function lock(
  client: Queryable,
  events: IncomingEvent[],
  { waitsForLocks, database }: { waitsForLocks: boolean; database?: string },
) {
  const [, stored, , applied, horizon] = await settleAll([
    // Also for locks of the whole table, which are always waited for.
    setLockTimeout(client, lockTimeoutMs),
    lockBookings(client, keysOf(events), waitsForLocks ? "wait" : "fail"),
    // Later statements have the connection's own limit again.
    setLockTimeout(client, "default"),
    // After the locks: until this transaction holds them, another one may be applying the same events.
    findProcessed(
      client,
      events.map(({ id }) => id),
    ),
    readLogHorizon(client, database),
  ]);
  return { stored, applied, horizon };
}

/** Separates events of bookings that have been erased. They are recorded without their content. */
async function separateErased(
  client: Queryable,
  newEvents: IncomingEvent[],
  { digestKey, stored }: { digestKey: DigestKey; stored: StoredBooking[] },
): Promise<{ erased: EventToInsert[]; events: IncomingEvent[] }> {
  const isStored = new Set(stored.map(nameBooking));
  const unknown = newEvents.filter((event) => !isStored.has(nameBooking(event)));
  if (unknown.length === 0) return { erased: [], events: newEvents };
  const erasedKeys = await findErased(client, digestKey, keysOf(unknown));
  if (erasedKeys.size === 0) return { erased: [], events: newEvents };
  const isErased = ({ bookingKey }: IncomingEvent) => erasedKeys.has(bookingKey.toString("hex"));
  return {
    erased: unknown.filter(isErased).map((event) => toErasedEntry(digestKey, event)),
    events: newEvents.filter((event) => !isErased(event)),
  };
}

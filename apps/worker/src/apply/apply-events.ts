import { comparePlaces, type Outcome } from "@booking-events/bookings";
import type { EventEnvelope } from "@booking-events/schema";
import {
  findLockedBookings,
  findProcessed,
  inTransaction,
  lockBookings,
  type Queryable,
  setLockTimeout,
  settleAll,
} from "@booking-events/store";
import { DatabaseError, type Pool } from "pg";
import { type IncomingEvent, nameBooking, toIncomingEvent } from "./incoming-event.ts";
import { groupByBooking, planBatch, type RecordedWarning, settleBooking, toWarning } from "./plan-batch.ts";
import { LeftOut, readHistory, refoldBookings } from "./read-history.ts";
import { Race, writeBatch } from "./write-batch.ts";

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

/** Each lost race means that another batch got through, so this many in a row do not happen by chance. */
const maxRaces = 20;
/** For the lock of a booking. Other workers hold it for one transaction each. */
const lockTimeoutMs = 1_000;

const lockNotAvailable = "55P03";
const deadlockDetected = "40P01";
const serializationFailure = "40001";

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
  return [...new Map(events.map((event) => [nameBooking(event), event.bookingKey])).values()];
}

/** Another transaction kept a lock for longer than this one waited. */
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

/** The phases of a transaction, in their order: lock, read, plan, write. */
async function applyInTransaction(
  client: Queryable,
  events: IncomingEvent[],
  options: ApplyOptions & { waitsForLocks: boolean },
): Promise<Applied> {
  const { stored, applied } = await lock(client, events, options);
  const bookings = groupByBooking(events, stored, applied);
  const { uses, creates } = await readHistory(client, bookings);
  const works = bookings.map((booking) => settleBooking(booking, uses));
  const refoldings = await refoldBookings(client, works, creates, options);
  const { duplicateWindowMs } = options;
  const plan = planBatch(works, { refoldings, creates, duplicateWindowMs });
  const misdirected = await writeBatch(client, plan);
  const meantOtherwise = plan.consumerDeletes.filter(({ id }) => misdirected.has(id));
  return {
    outcomes: new Map([...applied, ...plan.outcomes]),
    warnings: [...plan.warnings, ...meantOtherwise.map((event) => toWarning(event, "reference-kind"))],
  };
}

/** @returns the bookings that exist, and what stands in the log already, by the events' ids */
async function lock(client: Queryable, events: IncomingEvent[], { waitsForLocks }: { waitsForLocks: boolean }) {
  const [, stored, , applied] = await settleAll([
    setLockTimeout(client, lockTimeoutMs),
    lockBookings(client, keysOf(events), waitsForLocks ? "wait" : "fail"),
    // From here on the connection's own limit is in force again.
    setLockTimeout(client, "default"),
    // Behind the locks: until they are held, another transaction may be applying the same events.
    findProcessed(
      client,
      events.map(({ id }) => id),
    ),
  ]);
  return { stored, applied };
}

import type { Outcome } from "@booking-events/bookings";
import type { EventEnvelope } from "@booking-events/schema";
import { isLockTimeout } from "../apply/apply-events.ts";
import { readEnvelope } from "./read-envelope.ts";
import { rejectEvents, resolveEvents, type WaitingEvent } from "./take-batch.ts";

/**
 * Applies all of the events in one transaction, or none. Returns outcomes by the events' ids. Events without an outcome
 * must be applied alone: with other events of their booking only.
 */
export type ApplyBatch = (envelopes: EventEnvelope[], mode: ApplyMode) => Promise<ReadonlyMap<string, Outcome>>;

export interface ApplyMode {
  /** The events are of one booking, and no other events wait for them. */
  isAlone: boolean;
  /** The transaction waits for locked bookings, for a second at most. Otherwise their events have no outcome. */
  waitsForLocks: boolean;
}

export interface Aside {
  /** Applies each group of events by itself. */
  add(groups: WaitingEvent[][], options?: { waitsForLocks: boolean }): void;
}

/** Events that are applied apart from the batches. */
interface Group {
  events: WaitingEvent[];
  /** Of `performance.now()`. */
  addedAtMs: number;
  /** This group, or a larger one that held it, has been tried here. */
  isTried: boolean;
  /** The group may wait for locks, since other transactions held locks on its bookings when they were first tried. */
  waitsForLocks: boolean;
  /** How often the group has waited for a lock in vain. */
  lockTimeouts: number;
}

/** Each takes a second (`lockTimeoutMs` in `apply-events.ts`). Then the other groups have their turns. */
const maxLockTimeouts = 5;

/** Other groups took too long. The event is tried again later. */
class HeldUp extends Error {
  override name = "HeldUp";
}

/**
 * Applies groups of events that could not be applied in a batch, one group at a time, apart from the batches. A group
 * that fails is halved, until single events fail. So a faulty event costs the other events of its batch one
 * transaction.
 *
 * @param options.maxAsideMs a group that is not settled after this time fails. Its events hold places in the worker
 *   that events in the queue wait for
 * @param options.signal aborts when the worker stops. The groups fail with its reason then
 * @param options.rejectWaiting rejects the events of one booking that wait for a batch
 * @param options.onTurn called after each group
 */
export function createAside(options: {
  applyBatch: ApplyBatch;
  maxAsideMs: number;
  signal: AbortSignal;
  rejectWaiting: (subject: string, error: unknown) => void;
  onTurn: () => void;
}): Aside {
  const { applyBatch, maxAsideMs, signal, rejectWaiting, onTurn } = options;
  const groups: Group[] = [];
  let isApplying = false;

  async function applyGroups(): Promise<void> {
    isApplying = true;
    for (let group = groups.shift(); group !== undefined; group = groups.shift()) {
      if (signal.aborted) rejectEvents(group.events, signal.reason);
      else await applyGroup(group);
      onTurn();
    }
    isApplying = false;
  }

  async function applyGroup(group: Group): Promise<void> {
    const { events, addedAtMs, isTried } = group;
    if (isTried && performance.now() - addedAtMs > maxAsideMs)
      return rejectEvents(events, new HeldUp("Other events that had to be applied apart took too long."));
    const isAlone = isOfOneBooking(events);
    try {
      const envelopes = events.map(({ text }) => readEnvelope(text));
      const mode = { isAlone, waitsForLocks: isAlone || group.waitsForLocks };
      const left = resolveEvents({ events, envelopes }, await applyBatch(envelopes, mode));
      tryAgain(group, groupByBooking(left));
    } catch (error) {
      if (signal.aborted) rejectEvents(events, signal.reason);
      else if (isLockTimeout(error) && isAlone) tryAgainForLock(group, error);
      else if (isLockTimeout(error) && group.waitsForLocks) tryAgain(group, groupByBooking(events));
      else if (events.length === 1) rejectEvents(events, error);
      else tryAgain(group, halve(events));
    }
  }

  function tryAgain(group: Group, parts: WaitingEvent[][]): void {
    groups.push(...parts.map((events) => ({ ...group, events, isTried: true })));
  }

  function tryAgainForLock(group: Group, error: unknown): void {
    const lockTimeouts = group.lockTimeouts + 1;
    if (lockTimeouts < maxLockTimeouts) {
      tryAgain({ ...group, lockTimeouts }, [group.events]);
      return;
    }
    rejectEvents(group.events, error);
    // Something keeps the booking locked. If all of its events waited for that here, they would fill the worker.
    const [{ subject }] = group.events as [WaitingEvent];
    rejectWaiting(subject, error);
  }

  return {
    add(parts, { waitsForLocks } = { waitsForLocks: false }) {
      const common = { addedAtMs: performance.now(), isTried: false, waitsForLocks, lockTimeouts: 0 };
      // Before the groups that have been tried.
      groups.unshift(...parts.map((events) => ({ ...common, events })));
      if (!isApplying && groups.length > 0) void applyGroups();
    },
  };
}

function isOfOneBooking(events: WaitingEvent[]): boolean {
  return events.every(({ subject }) => subject === events[0]?.subject);
}

function groupByBooking(events: WaitingEvent[]): WaitingEvent[][] {
  return [...Map.groupBy(events, ({ subject }) => subject).values()];
}

function halve(events: WaitingEvent[]): WaitingEvent[][] {
  const middle = Math.ceil(events.length / 2);
  return [events.slice(0, middle), events.slice(middle)];
}

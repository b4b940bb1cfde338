import { isLockTimeout } from "../apply/apply-events.ts";
import { readEnvelope } from "./read-envelope.ts";
import type { Transactions } from "./transactions.ts";
import {
  groupByBooking,
  rejectEvents,
  resolveEvents,
  type WaitingEvent,
  type WaitingEvents,
} from "./waiting-events.ts";

/** Events that are applied apart from the batches. */
interface Group {
  events: WaitingEvent[];
  /** Of `performance.now()`. */
  addedAtMs: number;
  /** This group, or a larger one that held it, has been tried here. */
  isTried: boolean;
  /** The group may wait for locks, since other transactions held locks on its bookings when they were first tried. */
  waitsForLocks: boolean;
  lockTimeouts: number;
}

/** Each takes a second (`lockTimeoutMs` in `apply-events.ts`). Then the other groups have their turns. */
const maxLockTimeouts = 5;

/** Other groups took too long. The event is tried again later. */
class HeldUp extends Error {
  override name = "HeldUp";
}

interface AsideParts {
  transactions: Pick<Transactions, "applyTogether" | "recoveredAtMs">;
  waiting: Pick<WaitingEvents, "rejectBooking">;
  /** A group that has not ended after this time fails. The time begins again after an outage. */
  maxAsideMs: number;
  /** Aborts when the worker stops. The groups fail with its reason then. */
  signal: AbortSignal;
  /** Called after each group. */
  onTurn: () => void;
}

/**
 * Applies groups of events that could not be applied in a batch, one group at a time, apart from the batches. A group
 * that fails is halved, until single events fail. So a faulty event costs the other events of its batch one
 * transaction.
 */
export class Aside {
  readonly #parts: AsideParts;
  readonly #groups: Group[] = [];
  #isApplying = false;

  constructor(parts: AsideParts) {
    this.#parts = parts;
  }

  /** Applies each group of events by itself. */
  add(parts: WaitingEvent[][], { waitsForLocks }: { waitsForLocks: boolean }): void {
    const common = { addedAtMs: performance.now(), isTried: false, waitsForLocks, lockTimeouts: 0 };
    // Before the groups that have been tried.
    this.#groups.unshift(...parts.map((events) => ({ ...common, events })));
    if (!this.#isApplying && this.#groups.length > 0) void this.#applyGroups();
  }

  async #applyGroups(): Promise<void> {
    const { signal, onTurn } = this.#parts;
    this.#isApplying = true;
    for (let group = this.#groups.shift(); group !== undefined; group = this.#groups.shift()) {
      if (signal.aborted) rejectEvents(group.events, signal.reason);
      else await this.#applyGroup(group);
      onTurn();
    }
    this.#isApplying = false;
  }

  async #applyGroup(group: Group): Promise<void> {
    const { transactions, maxAsideMs, signal } = this.#parts;
    const { events, isTried } = group;
    const sinceMs = Math.max(group.addedAtMs, transactions.recoveredAtMs());
    if (isTried && performance.now() - sinceMs > maxAsideMs)
      return rejectEvents(events, new HeldUp("Other events that had to be applied apart took too long."));
    const isAlone = isOfOneBooking(events);
    try {
      const envelopes = events.map(({ text }) => readEnvelope(text));
      const mode = { isAlone, waitsForLocks: isAlone || group.waitsForLocks };
      const left = resolveEvents({ events, envelopes }, await transactions.applyTogether(envelopes, mode));
      this.#tryAgain(group, groupByBooking(left));
    } catch (error) {
      if (signal.aborted) rejectEvents(events, signal.reason);
      else if (isLockTimeout(error) && isAlone) this.#tryAgainForLock(group, error);
      else if (isLockTimeout(error) && group.waitsForLocks) this.#tryAgain(group, groupByBooking(events));
      else if (events.length === 1) rejectEvents(events, error);
      else this.#tryAgain(group, halve(events));
    }
  }

  #tryAgain(group: Group, parts: WaitingEvent[][]): void {
    this.#groups.push(...parts.map((events) => ({ ...group, events, isTried: true })));
  }

  #tryAgainForLock(group: Group, error: unknown): void {
    const lockTimeouts = group.lockTimeouts + 1;
    if (lockTimeouts < maxLockTimeouts) {
      this.#tryAgain({ ...group, lockTimeouts }, [group.events]);
      return;
    }
    rejectEvents(group.events, error);
    // Something keeps the booking locked. If all of its events waited for that here, they would fill the worker.
    const [{ subject }] = group.events as [WaitingEvent];
    this.#parts.waiting.rejectBooking(subject, error);
  }
}

function isOfOneBooking(events: WaitingEvent[]): boolean {
  return events.every(({ subject }) => subject === events[0]?.subject);
}

function halve(events: WaitingEvent[]): WaitingEvent[][] {
  const middle = Math.ceil(events.length / 2);
  return [events.slice(0, middle), events.slice(middle)];
}

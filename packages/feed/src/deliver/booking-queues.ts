import { type Entry, isOld } from "./intake.ts";

/**
 * What waits for its turn, by booking, and which bookings have theirs. Of one booking, one thing at a time is under way.
 */
export class BookingQueues {
  /** In the order in which their turns come. */
  readonly #ready = new Map<string, Entry[]>();
  /** With what has come since. */
  readonly #busy = new Map<string, Entry[]>();

  add(entry: Entry): void {
    const queue = this.#busy.get(entry.bookingId) ?? this.#ready.get(entry.bookingId);
    if (queue === undefined) this.#ready.set(entry.bookingId, [entry]);
    else queue.push(entry);
  }

  isBusy(bookingId: string): boolean {
    return this.#busy.has(bookingId);
  }

  /** Gives the next booking its turn. @returns undefined: none waits */
  next(): Entry | undefined {
    const [first] = this.#ready;
    if (first === undefined) return undefined;
    const [bookingId, queue] = first;
    this.#ready.delete(bookingId);
    this.#busy.set(bookingId, queue);
    return queue.shift();
  }

  /** Gives a booking its turn, whatever waits. */
  begin(bookingId: string): void {
    this.#busy.set(bookingId, this.#ready.get(bookingId) ?? []);
    this.#ready.delete(bookingId);
  }

  /** Ends a booking's turn. What waits of it has its turn after the others. */
  end(bookingId: string): void {
    const queue = this.#busy.get(bookingId) ?? [];
    this.#busy.delete(bookingId);
    if (queue.length > 0) this.#ready.set(bookingId, queue);
  }

  /** Puts what could not be done back before what has come since. */
  putBack(entry: Entry): void {
    this.#busy.get(entry.bookingId)?.unshift(entry);
  }

  /** What waits of a booking up to this change is done. */
  finishUpTo(bookingId: string, changeId: number): void {
    const queue = this.#busy.get(bookingId) ?? [];
    while (queue[0] !== undefined && (queue[0].changeId ?? 0) <= changeId) queue.shift()?.finish();
  }

  /** Whether this change waits for its turn. */
  has(bookingId: string, changeId: number): boolean {
    return this.#busy.get(bookingId)?.some((entry) => entry.changeId === changeId) ?? false;
  }

  /**
   * Leaves out what a later change overrides, unless it is new.
   *
   * @returns what to hand over instead
   */
  skipOverridden(entry: Entry): Entry {
    const queue = this.#busy.get(entry.bookingId) ?? [];
    let first = entry;
    while (isOld(first.atMs) && queue.some(({ standsForOthers }) => standsForOthers)) {
      const next = queue.shift();
      if (next === undefined) break;
      first.finish();
      first = { ...next, standsForEarlier: true };
    }
    return first;
  }
}

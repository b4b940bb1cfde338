import type { DeliveryRow, Progress } from "./deliveries.ts";
import type { Place } from "./place.ts";

/** What a consumer has done that is not recorded yet. */
export class PendingProgress {
  #place: Place;
  /** Bookings that were delivered in their turn, up to which change. A row is needed only if that is ahead of the place. */
  #done = new Map<string, number>();
  #rows = new Map<string, DeliveryRow>();
  /** Bookings with rows that are being recorded. */
  #taken = new Set<string>();
  #isWorking: boolean | null = null;
  #breaker: Progress["breaker"] = null;

  constructor(place: Place) {
    this.#place = place;
  }

  addDone(bookingId: string, changeId: number): void {
    this.#done.set(bookingId, changeId);
  }

  addRow(row: DeliveryRow): void {
    const doneId = Math.max(row.doneId ?? 0, this.#done.get(row.bookingId) ?? 0);
    this.#rows.set(row.bookingId, { ...row, doneId: doneId === 0 ? null : doneId });
  }

  noteAttempt(isWorking: boolean): void {
    this.#isWorking = isWorking;
  }

  noteBreaker(breaker: Progress["breaker"]): void {
    this.#breaker = breaker;
  }

  /** Whether the booking can't have its turn until its row is recorded. */
  keeps(bookingId: string): boolean {
    return this.#rows.has(bookingId) || this.#taken.has(bookingId);
  }

  /** @returns null: nothing has changed */
  take(place: Place): Omit<Progress, "name" | "token"> | null {
    const isSamePlace = place.lastId === this.#place.lastId && place.snapshotAfter === this.#place.snapshotAfter;
    const ahead = [...this.#done].filter(([bookingId, doneId]) => doneId > place.lastId && !this.#rows.has(bookingId));
    const rows = [
      ...this.#rows.values(),
      ...ahead.map(([bookingId, doneId]) => ({ bookingId, doneId, waiting: null })),
    ];
    if (isSamePlace && rows.length === 0 && this.#isWorking === null && this.#breaker === null) return null;
    const progress = { place, isWorking: this.#isWorking, breaker: this.#breaker, rows };
    this.#place = place;
    this.#taken = new Set(this.#rows.keys());
    this.#rows = new Map();
    this.#done = new Map();
    this.#isWorking = null;
    this.#breaker = null;
    return progress;
  }

  /** @returns the bookings that can have their turn again */
  recorded(): string[] {
    const free = [...this.#taken].filter((bookingId) => !this.#rows.has(bookingId));
    this.#taken = new Set();
    return free;
  }
}

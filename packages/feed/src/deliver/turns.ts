import type { BookingQueues } from "./booking-queues.ts";
import type { Breaker } from "./breaker.ts";
import type { DueDelivery } from "./deliveries.ts";
import type { Entry } from "./intake.ts";

/** A booking whose turn it is. */
export interface Task {
  bookingId: string;
  changeId: number | null;
  /** Undefined: it waited in feed_deliveries. */
  entry?: Entry;
  isProbe: boolean;
}

/** Decides which booking is next: of those that have come in, and of those that wait for another attempt and are due. */
export class Turns {
  readonly #queues: BookingQueues;
  readonly #isLatest: boolean;
  /** First those whose guests arrive soon, each in the order of their ids. */
  #due: DueDelivery[] = [];
  /** Bookings whose attempts are under way, and how many of them are of deliveries that waited. */
  readonly #running = new Set<string>();
  #retries = 0;
  #prefersRetry = false;

  constructor(queues: BookingQueues, { isLatest }: { isLatest: boolean }) {
    this.#queues = queues;
    this.#isLatest = isLatest;
  }

  /** How many attempts are under way. */
  get running(): number {
    return this.#running.size;
  }

  isRunning(bookingId: string): boolean {
    return this.#running.has(bookingId);
  }

  /** @returns whether there is something new */
  offer(due: DueDelivery[]): boolean {
    const known = new Set(this.#due.map(({ bookingId }) => bookingId));
    const fresh = due.filter(({ bookingId }) => !known.has(bookingId) && !this.#queues.isBusy(bookingId));
    this.#due = [...this.#due, ...fresh].sort(
      (one, other) => Number(other.arrivesSoon) - Number(one.arrivesSoon) || one.changeId - other.changeId,
    );
    return fresh.length > 0;
  }

  /** @returns undefined: none waits, or as many are under way as may be */
  begin(breaker: Breaker): Task | undefined {
    if (this.#running.size >= breaker.limit) return undefined;
    const task = breaker.isOpen ? this.#nextProbe(breaker) : this.#next(breaker);
    if (task === undefined) return undefined;
    this.#running.add(task.bookingId);
    if (task.entry === undefined) this.#retries += 1;
    return task;
  }

  /** Its attempt has ended. When the booking may have another turn is told to the queues. */
  end({ bookingId, entry }: Task): void {
    this.#running.delete(bookingId);
    if (entry === undefined) this.#retries -= 1;
  }

  #next({ limit }: Breaker): Task | undefined {
    // Retries may hang: half of the slots are for what has not failed.
    const mayRetry = this.#retries < Math.ceil(limit / 2);
    this.#prefersRetry = !this.#prefersRetry;
    const retry = mayRetry && this.#prefersRetry ? this.#nextRetry() : undefined;
    return retry ?? this.#nextEntry() ?? (mayRetry ? this.#nextRetry() : undefined);
  }

  /**
   * First the lowest booking that has failed. Most of the others have not been tried before, in case that those that have
   * failed are themselves at fault.
   */
  #nextProbe({ probes }: Breaker): Task | undefined {
    const index = Math.floor(probes / 4) % Math.max(this.#due.length, 1);
    const first = probes % 4 === 0 ? this.#nextRetry(index) : undefined;
    const task = first ?? this.#nextEntry() ?? this.#nextRetry(index);
    return task && { ...task, isProbe: true };
  }

  #nextRetry(index = 0): Task | undefined {
    const [next] = this.#due.splice(index, 1);
    if (next === undefined) return undefined;
    if (this.#queues.isBusy(next.bookingId)) return this.#nextRetry();
    this.#queues.begin(next.bookingId);
    return { bookingId: next.bookingId, changeId: next.changeId, isProbe: false };
  }

  #nextEntry(): Task | undefined {
    const next = this.#queues.next();
    if (next === undefined) return undefined;
    const entry = this.#isLatest ? this.#queues.skipOverridden(next) : next;
    return { bookingId: entry.bookingId, changeId: entry.changeId, entry, isProbe: false };
  }
}

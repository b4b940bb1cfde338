import { Refusal } from "@booking-events/http";
import { answers } from "@booking-events/schema";

export const turnLimits = {
  /**
   * The time for work in one turn of the event loop; the last item may exceed it. It is enough for several hundred
   * ordinary bodies. The most expensive body of 64 KiB takes up to 10 ms.
   */
  budgetMs: 25,
  /** The same while connections are waiting. */
  budgetWhileAcceptingMs: 5,
  /**
   * Also while connections are waiting: the maximum number of items in one turn. As many connections are accepted before
   * the next one, so work keeps up with the bodies that they bring.
   */
  itemsWhileAccepting: 8,
  /**
   * An event that is accepted later could be ordered after newer events, because its sender may have given up: see
   * watch-freezes.ts.
   */
  longestWaitMs: 500,
  /** Per partner. */
  maxWaitingBytes: 16 * 1_048_576,
};

interface Waiting {
  /** Infinity: it may wait without limit. */
  sinceMs: number;
  bytes: number;
  start: () => void;
  refuse: (refusal: Refusal) => void;
}

interface PartnerQueue {
  waiting: Waiting[];
  bytes: number;
}

/**
 * Shares this process's CPU time between partners. Otherwise a partner that sends a hundred of the most expensive
 * bodies at once would block the event loop so long that everybody's requests would be refused as if the process had
 * been frozen.
 *
 * Work runs immediately while the turn has time left. Other work waits in a queue for each partner, and the queues are
 * served in turn.
 *
 * The event loop accepts one connection in each turn. If each turn had work, the last of a few hundred new connections
 * would wait for seconds. So while connections are waiting, a turn with little work is followed by several without,
 * unless the work has waited for half of the time that it may.
 */
export class Turns {
  readonly #isAccepting: () => boolean;
  readonly #now: () => number;
  /** By partner; the first one is served next. */
  readonly #queues = new Map<string, PartnerQueue>();
  #spentMs = 0;
  #itemsDone = 0;
  #isTurnCounted = false;
  /** How many of the next turns have no work if connections are waiting. */
  #turnsWithout = 0;

  /**
   * @param options.isAccepting whether connections may be waiting to be accepted
   * @param options.now a clock in milliseconds that is never set back
   */
  constructor({ isAccepting, now = () => performance.now() }: { isAccepting: () => boolean; now?: () => number }) {
    this.#isAccepting = isAccepting;
    this.#now = now;
  }

  /**
   * Runs the work now or in a later turn of the event loop, and returns its result.
   *
   * @param bytes the memory that the work occupies while it waits
   * @param canWait whether the work is never too old: nobody gives up on it
   * @throws Refusal if too much of the partner's work is waiting or the work has waited too long; what the work throws
   */
  async take<Result>(partner: string, bytes: number, work: () => Result, canWait = false): Promise<Result> {
    // A turn may have time left although work is waiting, since it has more as soon as no connection waits any more.
    if (this.#queues.size === 0 && this.#hasTimeLeft()) return this.#spend(work);
    const queue = this.#queues.get(partner) ?? { waiting: [], bytes: 0 };
    if (queue.bytes + bytes > turnLimits.maxWaitingBytes) throw new Refusal(answers.tooMuchToRead);
    return new Promise((resolve, refuse) => {
      const start = () => {
        try {
          resolve(this.#spend(work));
        } catch (error) {
          refuse(error);
        }
      };
      queue.waiting.push({ sinceMs: canWait ? Number.POSITIVE_INFINITY : this.#now(), bytes, start, refuse });
      queue.bytes += bytes;
      this.#queues.set(partner, queue);
    });
  }

  #spend<Result>(work: () => Result): Result {
    this.#countTurn();
    const startedAtMs = this.#now();
    try {
      return work();
    } finally {
      this.#spentMs += this.#now() - startedAtMs;
      this.#itemsDone += 1;
      this.#turnsWithout = turnLimits.itemsWhileAccepting;
    }
  }

  #hasTimeLeft(): boolean {
    if (!this.#isAccepting()) return this.#spentMs < turnLimits.budgetMs;
    return this.#spentMs < turnLimits.budgetWhileAcceptingMs && this.#itemsDone < turnLimits.itemsWhileAccepting;
  }

  /** Counts a turn from its first work. Work waits only after the turn's time has been spent. */
  #countTurn(): void {
    if (this.#isTurnCounted) return;
    this.#isTurnCounted = true;
    setImmediate(() => this.#startTurn());
  }

  #startTurn(): void {
    this.#isTurnCounted = false;
    if (this.#isAccepting() && this.#turnsWithout > 0 && !this.#isUrgent()) {
      this.#turnsWithout -= 1;
      this.#spentMs = turnLimits.budgetMs;
      this.#countTurn();
      return;
    }
    this.#spentMs = 0;
    this.#itemsDone = 0;
    for (const [partner, queue] of this.#queues) {
      if (!this.#hasTimeLeft()) break;
      this.#queues.delete(partner);
      this.#startFirst(queue);
      // The partner goes to the end, after those that this loop has yet to serve.
      if (queue.waiting.length > 0) this.#queues.set(partner, queue);
    }
  }

  /** Whether any partner's work may soon have waited too long. */
  #isUrgent(): boolean {
    const latestMs = this.#now() - turnLimits.longestWaitMs / 2;
    // A batch's lines may wait as long as they like, and stand before other work of their partner.
    return [...this.#queues.values()].some(({ waiting }) => {
      const first = waiting.find(({ sinceMs }) => sinceMs !== Number.POSITIVE_INFINITY);
      return first !== undefined && first.sinceMs < latestMs;
    });
  }

  #startFirst(queue: PartnerQueue): void {
    const first = queue.waiting.shift();
    if (first === undefined) return;
    queue.bytes -= first.bytes;
    if (this.#now() - first.sinceMs > turnLimits.longestWaitMs) first.refuse(new Refusal(answers.tooMuchToRead));
    else first.start();
  }
}

import { Refusal } from "@booking-events/http";
import { answers } from "@booking-events/schema";

/**
 * Runs the work now or in a later turn of the event loop, and returns its result.
 *
 * @param bytes the memory that the work occupies while it waits
 * @throws Refusal if too much of the partner's work is waiting or the work has waited too long; what the work throws
 */
export type TakeTurn = <Result>(partner: string, bytes: number, work: () => Result) => Promise<Result>;

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
 *
 * @param options.isAccepting whether connections may be waiting to be accepted
 * @param options.now a clock in milliseconds that is never set back
 */
export function createTurns(options: { isAccepting: () => boolean; now?: () => number }): TakeTurn {
  const { isAccepting, now = () => performance.now() } = options;
  /** By partner; the first one is served next. */
  const queues = new Map<string, PartnerQueue>();
  let spentMs = 0;
  let itemsDone = 0;
  let isTurnCounted = false;
  /** How many of the next turns have no work if connections are waiting. */
  let turnsWithout = 0;

  function spend<Result>(work: () => Result): Result {
    countTurn();
    const startedAtMs = now();
    try {
      return work();
    } finally {
      spentMs += now() - startedAtMs;
      itemsDone += 1;
      turnsWithout = turnLimits.itemsWhileAccepting;
    }
  }

  function hasTimeLeft(): boolean {
    if (!isAccepting()) return spentMs < turnLimits.budgetMs;
    return spentMs < turnLimits.budgetWhileAcceptingMs && itemsDone < turnLimits.itemsWhileAccepting;
  }

  /** Counts a turn from its first work. Work waits only after the turn's time has been spent. */
  function countTurn(): void {
    if (isTurnCounted) return;
    isTurnCounted = true;
    setImmediate(startTurn);
  }

  function startTurn(): void {
    isTurnCounted = false;
    if (isAccepting() && turnsWithout > 0 && !isUrgent()) {
      turnsWithout -= 1;
      spentMs = turnLimits.budgetMs;
      countTurn();
      return;
    }
    spentMs = 0;
    itemsDone = 0;
    for (const [partner, queue] of queues) {
      if (!hasTimeLeft()) break;
      queues.delete(partner);
      startFirst(queue);
      // The partner goes to the end, after those that this loop has yet to serve.
      if (queue.waiting.length > 0) queues.set(partner, queue);
    }
  }

  /** Whether the work that is next may soon have waited too long. */
  function isUrgent(): boolean {
    const [next] = queues.values();
    const sinceMs = next?.waiting[0]?.sinceMs;
    return sinceMs !== undefined && now() - sinceMs > turnLimits.longestWaitMs / 2;
  }

  function startFirst(queue: PartnerQueue): void {
    const first = queue.waiting.shift();
    if (first === undefined) return;
    queue.bytes -= first.bytes;
    if (now() - first.sinceMs > turnLimits.longestWaitMs) first.refuse(new Refusal(answers.tooMuchToRead));
    else first.start();
  }

  return async (partner, bytes, work) => {
    // A turn may have time left although work is waiting, since it has more as soon as no connection waits any more.
    if (queues.size === 0 && hasTimeLeft()) return spend(work);
    const queue = queues.get(partner) ?? { waiting: [], bytes: 0 };
    if (queue.bytes + bytes > turnLimits.maxWaitingBytes) throw new Refusal(answers.tooMuchToRead);
    return new Promise((resolve, refuse) => {
      const start = () => {
        try {
          resolve(spend(work));
        } catch (error) {
          refuse(error);
        }
      };
      queue.waiting.push({ sinceMs: now(), bytes, start, refuse });
      queue.bytes += bytes;
      queues.set(partner, queue);
    });
  };
}

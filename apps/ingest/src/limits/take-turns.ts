import { Refusal, tooMuchToRead } from "../http/answers.ts";

/**
 * Runs the work, at once or in a later turn of the event loop, and returns what it returns.
 *
 * @param bytes what waits in memory with the work
 * @throws Refusal when the partner has too much waiting, or its work has waited for too long; what the work throws
 */
export type TakeTurn = <Result>(partner: string, bytes: number, work: () => Result) => Promise<Result>;

export const turnLimits = {
  /**
   * What one turn of the event loop spends on work; the last piece may exceed it. It is enough for several hundred
   * ordinary bodies. The most expensive one of 64 KiB takes up to 10 ms.
   */
  budgetMs: 25,
  /** What is accepted later could come after newer events of its sender, who has given it up: see watch-freezes.ts. */
  longestWaitMs: 500,
  /** Of one partner. */
  maxWaitingBytes: 16 * 1_048_576,
};

interface Waiting {
  sinceMs: number;
  bytes: number;
  start: () => void;
  refuse: (refusal: Refusal) => void;
}

interface Line {
  waiting: Waiting[];
  bytes: number;
}

/**
 * Shares this process's CPU time between partners. Else one that sends a hundred of the most expensive bodies at a time
 * would keep the event loop busy for so long that everybody's requests were taken for what had waited in a frozen
 * process, and refused.
 *
 * Work runs at once while the turn has time left. The rest waits in a line for each partner, and the first of each line
 * is run in turn.
 *
 * @param now milliseconds, never set back
 */
export function createTurns(limits = turnLimits, now: () => number = () => performance.now()): TakeTurn {
  /** By partner; the first is the next one. */
  const lines = new Map<string, Line>();
  let spentMs = 0;
  let isTurnCounted = false;

  function spend<Result>(work: () => Result): Result {
    countTurn();
    const startedAtMs = now();
    try {
      return work();
    } finally {
      spentMs += now() - startedAtMs;
    }
  }

  /** From the first piece of work in a turn. Something waits only if that has spent the turn's time. */
  function countTurn(): void {
    if (isTurnCounted) return;
    isTurnCounted = true;
    setImmediate(startTurn);
  }

  function startTurn(): void {
    isTurnCounted = false;
    spentMs = 0;
    for (const [partner, line] of lines) {
      if (spentMs >= limits.budgetMs) break;
      lines.delete(partner);
      startFirst(line);
      // Behind the others, which come first in this very loop.
      if (line.waiting.length > 0) lines.set(partner, line);
    }
  }

  function startFirst(line: Line): void {
    const first = line.waiting.shift();
    if (first === undefined) return;
    line.bytes -= first.bytes;
    if (now() - first.sinceMs > limits.longestWaitMs) first.refuse(new Refusal(tooMuchToRead));
    else first.start();
  }

  return async (partner, bytes, work) => {
    // Nothing waits then: each turn starts what does until its time is spent.
    if (spentMs < limits.budgetMs) return spend(work);
    const line = lines.get(partner) ?? { waiting: [], bytes: 0 };
    if (line.bytes + bytes > limits.maxWaitingBytes) throw new Refusal(tooMuchToRead);
    return new Promise((resolve, refuse) => {
      const start = () => {
        try {
          resolve(spend(work));
        } catch (error) {
          refuse(error);
        }
      };
      line.waiting.push({ sinceMs: now(), bytes, start, refuse });
      line.bytes += bytes;
      lines.set(partner, line);
    });
  };
}

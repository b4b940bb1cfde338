export interface GatherLimits {
  /** Of one call: more that are at hand are more calls. Default: no limit. */
  maxItems?: number;
  /**
   * How many calls may be under way; what comes meanwhile is gathered for the next. One that takes longer than
   * `patienceMs` is no longer counted, so that nothing waits for longer. Default: no limit.
   */
  underWay?: { maxCalls: number; patienceMs: number };
}

/**
 * Makes one call for all items that are handed over within one turn of the event loop. An item that comes alone, while
 * nothing is under way, waits for the rest of its turn, and for nothing else.
 *
 * @param work gets the items in the order in which they came, and when the oldest did, by `performance.now()`; it
 *   returns the results in the same order. When it throws, each of its items fails with that
 */
export function gatherPerTurn<Item, Result>(
  work: (items: Item[], oldestAtMs: number) => Promise<Result[]>,
  { maxItems = Number.POSITIVE_INFINITY, underWay }: GatherLimits = {},
): (item: Item) => Promise<Result> {
  type Gathered = { item: Item; cameAtMs: number; resolve: (result: Result) => void; reject: (error: unknown) => void };
  let gathered: Gathered[] = [];
  let callsUnderWay = 0;
  let isFlushDue = false;

  function flushThisTurn(): void {
    if (isFlushDue || gathered.length === 0) return;
    isFlushDue = true;
    setImmediate(flush);
  }

  function flush(): void {
    isFlushDue = false;
    while (gathered.length > 0 && (underWay === undefined || callsUnderWay < underWay.maxCalls)) {
      const batch = gathered.slice(0, maxItems);
      gathered = gathered.slice(maxItems);
      void call(batch);
    }
  }

  async function call(batch: Gathered[]): Promise<void> {
    const stopCounting = count();
    try {
      const oldestAtMs = batch[0]?.cameAtMs ?? performance.now();
      const results = await work(
        batch.map(({ item }) => item),
        oldestAtMs,
      );
      batch.forEach(({ resolve }, index) => void resolve(results[index] as Result));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    stopCounting();
  }

  /** Counts a call as under way until the function that it returns is called, or it has taken too long. */
  function count(): () => void {
    if (underWay === undefined) return () => {};
    callsUnderWay += 1;
    let isCounted = true;
    const stopCounting = () => {
      clearTimeout(timer);
      if (!isCounted) return;
      isCounted = false;
      callsUnderWay -= 1;
      flushThisTurn();
    };
    const timer = setTimeout(stopCounting, underWay.patienceMs);
    return stopCounting;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      gathered.push({ item, cameAtMs: performance.now(), resolve, reject });
      flushThisTurn();
    });
}

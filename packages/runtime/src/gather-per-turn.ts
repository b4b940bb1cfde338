export interface GatherLimits {
  /** The maximum number of items in a call; more items take several calls. Default: no limit. */
  maxItems?: number;
  /**
   * Limits the calls in progress; other items are gathered for the next call. A call that takes longer than `maxWaitMs`
   * is no longer counted, so no item waits longer than that. Default: no limit.
   */
  underWay?: { maxCalls: number; maxWaitMs: number };
}

/**
 * Returns a function that gathers the items of one turn of the event loop into one call. While no call is in progress,
 * an item waits only for the end of its turn.
 *
 * @param work receives the items in the order of arrival, and the arrival time of the oldest one (`performance.now()`).
 *   It returns the results in the same order. If it throws, each of its items fails with that error
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

  /** Counts a call as in progress until the returned function is called or the call has taken too long. */
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
    const timer = setTimeout(stopCounting, underWay.maxWaitMs);
    return stopCounting;
  }

  return (item) =>
    new Promise((resolve, reject) => {
      gathered.push({ item, cameAtMs: performance.now(), resolve, reject });
      flushThisTurn();
    });
}

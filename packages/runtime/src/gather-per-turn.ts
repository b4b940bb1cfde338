export interface GatherLimits {
  /** The maximum number of items in a call; more items take several calls. Default: no limit. */
  maxItems?: number;
  /**
   * Limits the calls in progress; other items are gathered for the next call. A call that takes longer than `maxWaitMs`
   * is no longer counted, so no item waits longer than that. Default: no limit.
   */
  underWay?: { maxCalls: number; maxWaitMs: number };
}

/** Receives items in the order of arrival, and the arrival time of the oldest one (`performance.now()`). */
type Work<Item, Result> = (items: Item[], oldestAtMs: number) => Promise<Result[]>;

/**
 * Returns a function that gathers the items of one turn of the event loop into one call. While no call is in progress,
 * an item waits only for the end of its turn.
 *
 * @param work returns the results in the order of the items. If it throws, each of its items fails with that error
 */
export function gatherPerTurn<Item, Result>(
  work: Work<Item, Result>,
  limits: GatherLimits = {},
): (item: Item) => Promise<Result> {
  const gatherer = new Gatherer(work, limits);
  return (item) => gatherer.add(item);
}

interface Gathered<Item, Result> {
  item: Item;
  cameAtMs: number;
  resolve: (result: Result) => void;
  reject: (error: unknown) => void;
}

class Gatherer<Item, Result> {
  readonly #work: Work<Item, Result>;
  readonly #maxItems: number;
  readonly #underWay: GatherLimits["underWay"];
  #gathered: Gathered<Item, Result>[] = [];
  #callsUnderWay = 0;
  #isFlushDue = false;

  constructor(work: Work<Item, Result>, { maxItems = Number.POSITIVE_INFINITY, underWay }: GatherLimits) {
    this.#work = work;
    this.#maxItems = maxItems;
    this.#underWay = underWay;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#gathered.push({ item, cameAtMs: performance.now(), resolve, reject });
      this.#flushThisTurn();
    });
  }

  #flushThisTurn(): void {
    if (this.#isFlushDue || this.#gathered.length === 0) return;
    this.#isFlushDue = true;
    setImmediate(() => this.#flush());
  }

  #flush(): void {
    this.#isFlushDue = false;
    while (this.#gathered.length > 0 && this.#callsUnderWay < (this.#underWay?.maxCalls ?? Number.POSITIVE_INFINITY)) {
      const batch = this.#gathered.slice(0, this.#maxItems);
      this.#gathered = this.#gathered.slice(this.#maxItems);
      void this.#call(batch);
    }
  }

  async #call(batch: Gathered<Item, Result>[]): Promise<void> {
    const stopCounting = this.#count();
    try {
      const items = batch.map(({ item }) => item);
      const results = await this.#work(items, batch[0]?.cameAtMs ?? performance.now());
      batch.forEach(({ resolve }, index) => void resolve(results[index] as Result));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    stopCounting();
  }

  /** Counts a call as in progress until the returned function is called or the call has taken too long. */
  #count(): () => void {
    if (this.#underWay === undefined) return () => {};
    this.#callsUnderWay += 1;
    let isCounted = true;
    const stopCounting = () => {
      clearTimeout(timer);
      if (!isCounted) return;
      isCounted = false;
      this.#callsUnderWay -= 1;
      this.#flushThisTurn();
    };
    const timer = setTimeout(stopCounting, this.#underWay.maxWaitMs);
    return stopCounting;
  }
}

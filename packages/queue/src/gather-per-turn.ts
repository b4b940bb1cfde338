/**
 * Makes one call for all items that are handed over within one turn of the event loop. An item that comes alone waits
 * for the rest of its turn, and for nothing else.
 *
 * @param work gets the items in the order in which they came, and returns the results in the same order. When it
 *   throws, each of its items fails with that
 * @param maxItems of one call. More that come within a turn are more calls, made at once
 */
export function gatherPerTurn<Item, Result>(
  work: (items: Item[]) => Promise<Result[]>,
  maxItems = Number.POSITIVE_INFINITY,
): (item: Item) => Promise<Result> {
  type Gathered = { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void };
  let gathered: Gathered[] = [];

  async function call(batch: Gathered[]): Promise<void> {
    try {
      const results = await work(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => void resolve(results[index] as Result));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  function flush(): void {
    const all = gathered;
    gathered = [];
    for (let start = 0; start < all.length; start += maxItems) void call(all.slice(start, start + maxItems));
  }

  return (item) =>
    new Promise((resolve, reject) => {
      gathered.push({ item, resolve, reject });
      if (gathered.length === 1) setImmediate(flush);
    });
}

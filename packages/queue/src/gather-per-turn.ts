/**
 * Makes one call for all items that are handed over within one turn of the event loop. An item that comes alone waits
 * for the rest of its turn, and for nothing else.
 *
 * @param work gets the items in the order in which they came, and returns the results in the same order. When it
 *   throws, each of its items fails with that
 */
export function gatherPerTurn<Item, Result>(
  work: (items: Item[]) => Promise<Result[]>,
): (item: Item) => Promise<Result> {
  type Gathered = { item: Item; resolve: (result: Result) => void; reject: (error: unknown) => void };
  let gathered: Gathered[] = [];

  async function flush(): Promise<void> {
    const batch = gathered;
    gathered = [];
    try {
      const results = await work(batch.map(({ item }) => item));
      batch.forEach(({ resolve }, index) => void resolve(results[index] as Result));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
  }

  return (item) =>
    new Promise((resolve, reject) => {
      gathered.push({ item, resolve, reject });
      if (gathered.length === 1) setImmediate(flush);
    });
}

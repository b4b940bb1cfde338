/** Runs work when a slot is free. */
export type InSlot = <Result>(work: () => Promise<Result>) => Promise<Result>;

/** Runs some of the work at once; the rest waits, first come, first served. */
export function createSlots(count: number): InSlot {
  const waiting: (() => void)[] = [];
  let free = count;

  return async function inSlot(work) {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

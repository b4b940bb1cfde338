/** Chance that can be repeated: the same seed and stream give the same choices. */
export interface Random {
  /** In [0, 1). */
  fraction(): number;
  between(minimum: number, maximum: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
}

/**
 * mulberry32 (https://github.com/bryc/code/blob/master/jshash/PRNGs.md, public domain): not for secrets.
 *
 * @param stream gives each use its own sequence, so that a change in one does not shift the others
 */
export function createRandom(seed: number, stream: string): Random {
  let state = [...stream].reduce((hash, char) => Math.imul(hash ^ char.charCodeAt(0), 0x01000193), seed) | 0;

  function fraction(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  return {
    fraction,
    between: (minimum, maximum) => minimum + fraction() * (maximum - minimum),
    chance: (probability) => fraction() < probability,
    pick(items) {
      const item = items[Math.floor(fraction() * items.length)];
      if (item === undefined) throw new RangeError("There is nothing to pick from.");
      return item;
    },
  };
}

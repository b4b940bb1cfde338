export type Random = ReturnType<typeof createRandom>;

/**
 * Choices that can be repeated: the same seed and stream give the same ones. The generator is mulberry32
 * (https://github.com/bryc/code/blob/master/jshash/PRNGs.md, public domain), which must not make secrets.
 *
 * @param stream gives each use a sequence of its own: a change in one use does not shift the others
 */
export function createRandom(seed: number, stream: string) {
  let state = [...stream].reduce((hash, char) => Math.imul(hash ^ char.charCodeAt(0), 0x01000193), seed) | 0;

  /** In [0, 1). */
  function fraction(): number {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  return {
    between: (minimum: number, maximum: number) => minimum + fraction() * (maximum - minimum),
    chance: (probability: number) => fraction() < probability,
    pick<Item>(items: readonly Item[]): Item {
      const item = items[Math.floor(fraction() * items.length)];
      if (item === undefined) throw new RangeError("There is nothing to pick from.");
      return item;
    },
  };
}

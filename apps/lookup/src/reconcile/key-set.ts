/** A key takes two numbers of 32 bits, and what is known of its content a third. */
const numbersPerKey = 3;
const firstSlots = 1_024;

/**
 * A set of SHA-256 digests that keeps 64 bits of each, in 24 to 48 bytes. A `Set` of strings takes several times as
 * much. The probability that any of a million other digests looks as if it were among a million is 1 in 18 million.
 */
export class KeySet {
  /** Partners choose references, and could otherwise choose those whose keys belong in the same place. */
  readonly #factors = crypto.getRandomValues(new Uint32Array(2)).map((factor) => factor | 1);
  #slots = new Uint32Array(firstSlots * numbersPerKey);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get bytes(): number {
    return this.#slots.byteLength;
  }

  /**
   * Adds a key, unless it is in the set.
   *
   * @param mark 32 bits that stand for what comes with the key
   * @returns the mark with which the key had been added; undefined: it is new
   */
  add(key: Buffer, mark: number): number | undefined {
    // Half of the slots stay free, so a search ends soon.
    if ((this.#size + 1) * 2 > this.#slots.length / numbersPerKey) this.#grow();
    const [high, low] = split(key);
    const slot = this.#find(high, low);
    if (this.#slots[slot] !== 0) return this.#slots[slot + 2];
    this.#put(slot, { high, low, mark });
    this.#size += 1;
    return undefined;
  }

  has(key: Buffer): boolean {
    const [high, low] = split(key);
    return this.#slots[this.#find(high, low)] !== 0;
  }

  /** Returns the slot of the key, or the free one where it belongs. */
  #find(high: number, low: number): number {
    const slots = this.#slots;
    const [highFactor = 1, lowFactor = 1] = this.#factors;
    const mask = slots.length / numbersPerKey - 1;
    // The upper bits of the product depend on all bits of the key.
    const product = Math.imul(high, highFactor) + Math.imul(low, lowFactor);
    for (let place = product >>> Math.clz32(mask); ; place = (place + 1) & mask) {
      const slot = place * numbersPerKey;
      if (slots[slot] === 0 || (slots[slot] === high && slots[slot + 1] === low)) return slot;
    }
  }

  #put(slot: number, { high, low, mark }: { high: number; low: number; mark: number }): void {
    this.#slots[slot] = high;
    this.#slots[slot + 1] = low;
    this.#slots[slot + 2] = mark;
  }

  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    for (let slot = 0; slot < old.length; slot += numbersPerKey) {
      const [high = 0, low = 0, mark = 0] = [old[slot], old[slot + 1], old[slot + 2]];
      if (high !== 0) this.#put(this.#find(high, low), { high, low, mark });
    }
  }
}

/** The first number is never 0, which marks a free slot. */
function split(key: Buffer): [high: number, low: number] {
  return [key.readUInt32BE(0) || 1, key.readUInt32BE(4)];
}

interface Mark<Place> {
  place: Place;
  isDone: boolean;
}

/**
 * What has been read and is not done, in the order in which it was read. It tells up to where everything is done, which is
 * all that has to be kept.
 */
export class UnderWay<Place> {
  /** The first `#start` are done. They are removed in large steps, so that each costs little. */
  #marks: Mark<Place>[] = [];
  #start = 0;
  #doneUpTo: Place;
  #readUpTo: Place;

  constructor(place: Place) {
    this.#doneUpTo = place;
    this.#readUpTo = place;
  }

  /** Everything up to here is done. */
  get doneUpTo(): Place {
    return this.#doneUpTo;
  }

  /** Everything up to here has been read. */
  get readUpTo(): Place {
    return this.#readUpTo;
  }

  get size(): number {
    return this.#marks.length - this.#start;
  }

  /** @returns call it when the item is done; more often does no harm */
  add(place: Place): () => void {
    const mark = { place, isDone: false };
    this.#marks.push(mark);
    this.#readUpTo = place;
    return () => {
      mark.isDone = true;
      this.#advance();
    };
  }

  /** There was nothing to do up to here. */
  skipTo(place: Place): void {
    this.#readUpTo = place;
    if (this.size === 0) this.#doneUpTo = place;
    else this.#marks.push({ place, isDone: true });
  }

  #advance(): void {
    for (let mark = this.#marks[this.#start]; mark?.isDone; mark = this.#marks[this.#start]) {
      this.#doneUpTo = mark.place;
      this.#start += 1;
    }
    if (this.#start * 2 < this.#marks.length) return;
    this.#marks = this.#marks.slice(this.#start);
    this.#start = 0;
  }
}

interface Mark<Place> {
  place: Place;
  isDone: boolean;
}

/**
 * What has been read and is not done, in the order in which it was read. It tells up to where everything is done, which is
 * all that has to be kept.
 */
export class UnderWay<Place> {
  /** From the first that is not done. */
  readonly #marks: Mark<Place>[] = [];
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
    return this.#marks.length;
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
    for (let [first] = this.#marks; first?.isDone; [first] = this.#marks) {
      this.#doneUpTo = first.place;
      this.#marks.shift();
    }
  }
}

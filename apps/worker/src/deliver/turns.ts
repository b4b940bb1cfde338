/** Lets work take turns: at most so many run at a time, in the order in which they come. */
export class Turns {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(maxAtOnce: number) {
    this.#free = maxAtOnce;
  }

  async take<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free > 0) this.#free -= 1;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#free += 1;
      else next();
    }
  }
}

import type { Closeness } from "./guest-search.ts";

/** Keeps what is found of a guest, up to a limit of exact hits. Near ones take nothing of it. */
export class GuestHits<Hit extends { closeness: Closeness }> {
  readonly all: Hit[] = [];
  readonly #limit: number;
  #exact = 0;

  /** @param limit Default: none */
  constructor(limit = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
  }

  get isFull(): boolean {
    return this.#exact >= this.#limit;
  }

  /** @returns whether it is kept */
  add(hit: Hit): boolean {
    if (hit.closeness === "near" ? this.all.length >= this.#limit : this.isFull) return false;
    this.all.push(hit);
    if (hit.closeness === "exact") this.#exact += 1;
    return true;
  }
}

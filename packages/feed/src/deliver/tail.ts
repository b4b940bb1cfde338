import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "../tables.ts";
import type { FeedEntry } from "./feed-entry.ts";
import { readPage } from "./read-page.ts";

/** About 2 MB. Whoever is further behind reads for itself. */
const maxEntries = 10_000;
const pageSize = 1_000;

/**
 * The newest changes of the feed, read once for all consumers of the process. Ids have no gaps, so an entry is found by
 * its id.
 */
export class Tail {
  /** The entries are those after this id. Undefined: nothing has been read. */
  #after: number | undefined;
  #entries: FeedEntry[] = [];

  /**
   * The changes after an id, up to the end of the feed as it is known.
   *
   * @returns undefined: it doesn't have them
   */
  entriesAfter(id: number, limit: number): FeedEntry[] | undefined {
    if (this.#after === undefined || id < this.#after || id > this.end) return undefined;
    const start = id - this.#after;
    return this.#entries.slice(start, start + limit);
  }

  get hasBegun(): boolean {
    return this.#after !== undefined;
  }

  /** The last change that is known. */
  get end(): number {
    return (this.#after ?? 0) + this.#entries.length;
  }

  /** Begins at the end of the feed. */
  startAt(end: number): void {
    this.#after = end;
    this.#entries = [];
  }

  /**
   * Reads what has come since.
   *
   * @returns whether there may be more
   * @throws FeedGapError
   */
  async readOn(client: Queryable, tables: FeedTables): Promise<boolean> {
    const page = await readPage(client, tables, {
      name: "tail",
      after: this.end,
      limit: pageSize,
      partners: null,
      kinds: null,
      skip: null,
    });
    this.#entries.push(...page.entries);
    this.#trim();
    return page.entries.length === pageSize;
  }

  #trim(): void {
    if (this.#entries.length <= maxEntries) return;
    const surplus = this.#entries.length - maxEntries / 2;
    this.#entries = this.#entries.slice(surplus);
    this.#after = (this.#after ?? 0) + surplus;
  }
}

import type { Queryable } from "@booking-events/store";
import type { FeedTables } from "../tables.ts";
import type { DeliveryFilter } from "./consumer-options.ts";
import { type FeedEntry, laggingMs } from "./feed-entry.ts";
import { kindsThatStandForOthers, kindsToLookAt } from "./filter.ts";
import type { Place } from "./place.ts";
import { readPage } from "./read-page.ts";
import { readSnapshotPage } from "./read-snapshot-page.ts";
import type { Tail } from "./tail.ts";
import { UnderWay } from "./under-way.ts";

/** A booking that is to be handed over in its turn. */
export interface Entry {
  bookingId: string;
  /** The change; null: whatever the booking holds, for a snapshot. */
  changeId: number | null;
  /** Overrides the changes of the booking before it. */
  standsForOthers: boolean;
  standsForEarlier: boolean;
  /** Where the consumer is once this and all before it is done. */
  place: Place;
  /** When it was made, by this process' monotonic clock. */
  atMs: number;
  /** Nothing is left to do of it. */
  finish: () => void;
}

/** How many changes are read ahead. Of each, ids are kept. */
const maxUnderWay = 1_000;
const snapshotPageSize = 500;

export interface IntakeOptions {
  name: string;
  mode: "latest" | "every";
  filter: DeliveryFilter;
  place: Place;
  tail: Tail;
  tables: FeedTables;
  /** Waits out outages. */
  read: <Result>(work: (client: Queryable) => Promise<Result>) => Promise<Result>;
}

/** Reads what a consumer is to be given, in order and not too far ahead, and knows how far all of it is done. */
export class Intake {
  readonly #options: IntakeOptions;
  readonly #kinds;
  readonly #standingKinds;
  readonly #underWay: UnderWay<Place>;
  #isReading = false;
  /** See `SkipOptions`. What an earlier process skipped is not known, so the first round has no start. */
  #round: { start: number | null; end: number | null } = { start: null, end: null };

  constructor(options: IntakeOptions) {
    this.#options = options;
    this.#kinds = kindsToLookAt(options.filter);
    this.#standingKinds = kindsThatStandForOthers(options.filter);
    this.#underWay = new UnderWay(options.place);
  }

  /** Everything up to here is done. */
  get place(): Place {
    return this.#underWay.doneUpTo;
  }

  /** The last change that has been read. */
  get readUpTo(): number {
    return this.#underWay.readUpTo.lastId;
  }

  /**
   * Reads on, if there is room.
   *
   * @param add gets what has been read, at the same moment at which `readUpTo` moves
   * @returns when that was done, if it takes a query
   */
  take(add: (entries: Entry[]) => void): Promise<void> | undefined {
    if (this.#isReading || this.#underWay.size > maxUnderWay / 2) return undefined;
    const { lastId, snapshotAfter } = this.#underWay.readUpTo;
    if (snapshotAfter !== null) return this.#reading(() => this.#readSnapshot({ lastId, snapshotAfter }, add));
    const { mode, tail } = this.#options;
    // It wakes the consumer once it has begun.
    if (!tail.hasBegun) return undefined;
    const waiting = tail.entriesAfter(lastId, maxUnderWay - this.#underWay.size);
    if (waiting === undefined || (mode === "latest" && this.#maySkip(lastId, waiting)))
      return this.#reading(() => this.#readPage(lastId, add));
    this.#round = { start: lastId + waiting.length, end: null };
    const wanted = waiting.filter((entry) => this.#mayBeWanted(entry));
    add(this.#toEntries(wanted, lastId + waiting.length));
    return undefined;
  }

  /** Whether some are to be left out, or stand for others that were. */
  #maySkip(after: number, [first]: FeedEntry[]): boolean {
    const { start, end } = this.#round;
    if (first === undefined) return false;
    return isOld(first.atMs) || start === null || (end !== null && after < end);
  }

  async #reading(read: () => Promise<void>): Promise<void> {
    this.#isReading = true;
    try {
      await read();
    } finally {
      this.#isReading = false;
    }
  }

  async #readPage(after: number, add: (entries: Entry[]) => void): Promise<void> {
    const { name, mode, filter, tables, read } = this.#options;
    const isLatest = mode === "latest";
    const { end } = this.#round;
    if (end !== null && after >= end) this.#round = { start: after, end: null };
    const page = await read((client) =>
      readPage(client, tables, {
        name,
        after,
        limit: maxUnderWay - this.#underWay.size,
        partners: filter.partners ?? null,
        kinds: this.#kinds,
        skip: isLatest
          ? { roundStart: this.#round.start ?? 0, roundEnd: this.#round.end, standingKinds: this.#standingKinds }
          : null,
      }),
    );
    this.#round.end ??= page.end;
    add(this.#toEntries(page.entries, page.upTo));
  }

  async #readSnapshot(
    { lastId, snapshotAfter }: { lastId: number; snapshotAfter: string },
    add: (entries: Entry[]) => void,
  ): Promise<void> {
    const { tables, filter, read } = this.#options;
    const page = await read((client) =>
      readSnapshotPage(client, tables, {
        after: snapshotAfter,
        limit: snapshotPageSize,
        partners: filter.partners ?? null,
      }),
    );
    const entries = page.bookingIds.map((bookingId) => {
      const place = { lastId, snapshotAfter: bookingId };
      const stands = { standsForOthers: true, standsForEarlier: true };
      return {
        bookingId,
        changeId: null,
        ...stands,
        place,
        atMs: performance.now(),
        finish: this.#underWay.add(place),
      };
    });
    this.#underWay.skipTo({ lastId, snapshotAfter: page.isLast ? null : page.upTo });
    add(entries);
  }

  #toEntries(entries: FeedEntry[], upTo: number): Entry[] {
    const added = entries.map(({ id, bookingId, change, standsForEarlier, atMs }) => {
      const place = { lastId: id, snapshotAfter: null };
      const standsForOthers = this.#standingKinds?.includes(change) ?? true;
      const finish = this.#underWay.add(place);
      return { bookingId, changeId: id, standsForOthers, standsForEarlier, place, atMs, finish };
    });
    if (upTo > this.readUpTo) this.#underWay.skipTo({ lastId: upTo, snapshotAfter: null });
    return added;
  }

  #mayBeWanted({ partner, change }: FeedEntry): boolean {
    const { partners } = this.#options.filter;
    return (partners?.includes(partner) ?? true) && (this.#kinds?.includes(change) ?? true);
  }
}

/** So old that a newer change takes its place, if the consumer wants the latest only. */
export function isOld(atMs: number): boolean {
  return performance.now() - atMs > laggingMs;
}

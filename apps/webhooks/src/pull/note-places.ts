import { repeat } from "@booking-events/runtime";

const intervalMs = 1_000;

/**
 * Records how far each subscriber that pulls has come: it has dealt with everything up to the position after which it
 * asks. So its lag is seen as any reader's is, and retention keeps what it needs.
 */
export class PlaceNotes {
  readonly #write: (name: string, lastId: number) => Promise<void>;
  readonly #closing = new AbortController();
  readonly #noted = new Map<string, number>();

  constructor(write: (name: string, lastId: number) => Promise<void>) {
    this.#write = write;
    void repeat(() => this.#writeNoted(), intervalMs, this.#closing.signal);
  }

  /** It is recorded within a second or, if something depends on it, before this resolves. */
  async note(name: string, lastId: number, { now }: { now: boolean }): Promise<void> {
    this.#noted.set(name, lastId);
    if (now) await this.#write(name, lastId);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#writeNoted();
  }

  /** What can't be written now is written with what the subscriber asks for next. */
  async #writeNoted(): Promise<void> {
    const places = [...this.#noted];
    this.#noted.clear();
    await Promise.allSettled(places.map(([name, lastId]) => this.#write(name, lastId)));
  }
}

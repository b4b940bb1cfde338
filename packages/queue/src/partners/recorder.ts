/**
 * Gathers entries and writes them together at an interval, so that no request waits for it. There is one write at a
 * time: while Redis is slow, entries wait, up to a limit if there is one.
 */
export class Recorder<Entry> {
  readonly #write: (entries: Entry[]) => Promise<void>;
  readonly #onFailure: (error: unknown, entries: ReadonlyMap<string, Entry>) => void;
  readonly #maxWaiting: number;
  readonly #timer: NodeJS.Timeout;
  #waiting = new Map<string, Entry>();
  #writing: Promise<void> | undefined;

  /**
   * @param options.write called with at least one entry; rejects if it may not have written all of them
   * @param options.onFailure called with the entries of a write that failed, by key. Some may have been written
   * @param options.maxWaiting how many entries may wait for the next write. Default: no limit
   */
  constructor(options: {
    write: (entries: Entry[]) => Promise<void>;
    onFailure: (error: unknown, entries: ReadonlyMap<string, Entry>) => void;
    intervalMs: number;
    maxWaiting?: number;
  }) {
    this.#write = options.write;
    this.#onFailure = options.onFailure;
    this.#maxWaiting = options.maxWaiting ?? Number.POSITIVE_INFINITY;
    this.#timer = setInterval(() => void this.#writeNext(), options.intervalMs).unref();
  }

  /** Returns the entry that waits under this key, which may be changed. */
  get(key: string): Entry | undefined {
    return this.#waiting.get(key);
  }

  /**
   * Adds an entry, or replaces the one that waits under the same key.
   *
   * @returns false if too many others wait
   */
  set(key: string, entry: Entry): boolean {
    if (this.#waiting.size >= this.#maxWaiting && !this.#waiting.has(key)) return false;
    this.#waiting.set(key, entry);
    return true;
  }

  /** Writes what waits. Never throws. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#writing;
    await this.#writeAll();
  }

  #writeNext(): void {
    this.#writing ??= this.#writeAll().finally(() => {
      this.#writing = undefined;
    });
  }

  async #writeAll(): Promise<void> {
    const entries = this.#waiting;
    if (entries.size === 0) return;
    this.#waiting = new Map();
    try {
      await this.#write([...entries.values()]);
    } catch (error) {
      this.#onFailure(error, entries);
    }
  }
}

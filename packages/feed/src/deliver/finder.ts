import type { Found, Wanted } from "./read-deliveries.ts";

/** Each brings two payloads of up to 64 KiB. */
const maxPerQuery = 64;
/** How long those that may wait do so for others. */
export const gatherMs = 2;

interface Waiting {
  wanted: Wanted;
  resolve: (found: Found) => void;
  reject: (error: unknown) => void;
  /** Since when, by `performance.now()`. */
  sinceMs: number;
}

/** Reads what many consumers want together, so that it takes one query. */
export class Finder {
  readonly #read: (wanted: Wanted[]) => Promise<Found[]>;
  #waiting: Waiting[] = [];
  #isReading = false;
  /** One of those that wait may not. */
  #isUrgent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(read: (wanted: Wanted[]) => Promise<Found[]>) {
    this.#read = read;
  }

  /** @param options.mayWait other attempts are under way, whose ends may be gathered for the same query */
  find(wanted: Wanted, { mayWait }: { mayWait: boolean }): Promise<Found> {
    const found = new Promise<Found>((resolve, reject) => {
      this.#waiting.push({ wanted, resolve, reject, sinceMs: performance.now() });
    });
    this.#isUrgent ||= !mayWait;
    this.#schedule();
    return found;
  }

  #schedule(): void {
    const [first] = this.#waiting;
    if (this.#isReading || first === undefined) return;
    const pauseMs = first.sinceMs + gatherMs - performance.now();
    if (!this.#isUrgent && pauseMs > 0) {
      this.#timer ??= setTimeout(() => void this.#readNext(), pauseMs);
      return;
    }
    this.#isReading = true;
    clearTimeout(this.#timer);
    // What others want in this turn of the event loop comes along.
    setImmediate(() => void this.#readNext());
  }

  async #readNext(): Promise<void> {
    this.#isReading = true;
    this.#timer = undefined;
    const batch = this.#waiting.splice(0, maxPerQuery);
    this.#isUrgent = false;
    try {
      const found = await this.#read(batch.map(({ wanted }) => wanted));
      for (const [index, { resolve }] of batch.entries()) resolve(found[index] as Found);
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    this.#isReading = false;
    this.#schedule();
  }
}

import type { Found, Wanted } from "./read-deliveries.ts";

/** Each brings two payloads of up to 64 KiB. */
const maxPerQuery = 64;

interface Waiting {
  wanted: Wanted;
  resolve: (found: Found) => void;
  reject: (error: unknown) => void;
}

/** Reads what many consumers want together, so that it takes one query. */
export class Finder {
  readonly #read: (wanted: Wanted[]) => Promise<Found[]>;
  #waiting: Waiting[] = [];
  #isReading = false;

  constructor(read: (wanted: Wanted[]) => Promise<Found[]>) {
    this.#read = read;
  }

  find(wanted: Wanted): Promise<Found> {
    const found = new Promise<Found>((resolve, reject) => {
      this.#waiting.push({ wanted, resolve, reject });
    });
    // What others want in this turn of the event loop comes along.
    if (!this.#isReading) {
      this.#isReading = true;
      setImmediate(() => void this.#readAll());
    }
    return found;
  }

  async #readAll(): Promise<void> {
    for (let batch = this.#take(); batch.length > 0; batch = this.#take()) {
      try {
        const found = await this.#read(batch.map(({ wanted }) => wanted));
        for (const [index, { resolve }] of batch.entries()) resolve(found[index] as Found);
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#isReading = false;
  }

  #take(): Waiting[] {
    return this.#waiting.splice(0, maxPerQuery);
  }
}

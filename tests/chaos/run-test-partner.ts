import { defaultSchema, testSchemaOf } from "@booking-events/store";
import { check, type Violation } from "./check.ts";
import { createPool } from "./database.ts";
import { inventHistories } from "./histories.ts";
import { EventLoad, type SendOptions } from "./post-events.ts";
import { createRandom } from "./random.ts";
import { readDatabase } from "./read-database.ts";
import { type System, testPartner } from "./start-system.ts";

const perSecond = 10;

/**
 * A test partner, which sends the same kind of histories as the others, of bookings with the same references. Its events
 * must go the whole way, too. That none is among those of the others, or the other way round, shows where each are
 * checked: an event that its own partners did not send is one that nobody can explain.
 */
export class TestPartner {
  readonly #system: System;
  readonly #load: EventLoad;

  constructor(system: System, options: { seed: number; forMs: number; sendOptions: SendOptions; signal: AbortSignal }) {
    const { seed, forMs, ...ofLoad } = options;
    const histories = inventHistories(createRandom(seed, "test partner"));
    this.#system = system;
    this.#load = new EventLoad({
      ...ofLoad,
      next: () => ({ ...histories.next().value, partner: testPartner, attempts: [] }),
      perSecond,
      count: Math.floor((forMs / 1_000) * perSecond),
      ingestUrls: system.entrance.ingestUrls,
      secretOf: system.secretOf,
    });
  }

  get done(): Promise<void> {
    return this.#load.done;
  }

  get acknowledged(): number {
    return this.#load.acknowledged;
  }

  /** The queue must be empty. */
  async finish(): Promise<Violation[]> {
    const { databaseUrl, duplicateWindowMs } = this.#system;
    const pool = createPool(databaseUrl, testSchemaOf(defaultSchema));
    try {
      const database = await readDatabase(pool);
      const { violations } = check({ posts: this.#load.posts, database, duplicateWindowMs });
      return violations.map(({ kind, what }) => ({ kind, what: `of the test partner: ${what}` }));
    } finally {
      await pool.end();
    }
  }
}

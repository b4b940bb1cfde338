import { repeat } from "@booking-events/runtime";
import type pg from "pg";
import type { Violation } from "./check.ts";
import { createPool } from "./database.ts";
import type { SupervisedApp } from "./supervise.ts";

const lookIntervalMs = 1_000;
const databaseName = "stranger";

/** A worker of another environment: it has a database of its own, and by mistake the same Redis and prefix. */
export class Stranger {
  readonly #pool: pg.Pool;
  readonly #app: SupervisedApp;
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  #timesReady = 0;

  private constructor(pool: pg.Pool, app: SupervisedApp) {
    this.#pool = pool;
    this.#app = app;
    this.#watching = repeat(() => this.#look(), lookIntervalMs, this.#stopping.signal);
  }

  /**
   * Starts it beside a system whose workers are ready.
   *
   * @param system.startStranger starts a worker with the URL of its database
   */
  static async start(system: {
    databaseUrl: string;
    pool: pg.Pool;
    startStranger: (databaseUrl: string) => Promise<SupervisedApp>;
  }): Promise<Stranger> {
    await system.pool.query(`create database ${databaseName}`);
    const url = system.databaseUrl.replace(/\/[^/?]*(?=\?|$)/, `/${databaseName}`);
    return new Stranger(createPool(url), await system.startStranger(url));
  }

  /** @returns what it has done that only a worker of the right database may do */
  async finish(): Promise<Violation[]> {
    this.#stopping.abort();
    await this.#watching;
    const { rows } = await this.#pool.query<{ events: number }>(
      `select ((select count(*) from booking_events) + (select count(*) from dead_letters)
         + (select count(*) from bookings))::int as events`,
    );
    await this.#pool.end();
    const events = rows[0]?.events ?? 0;
    return [
      ...(this.#timesReady > 0 ? [`it was ready ${this.#timesReady} times`] : []),
      ...(events > 0 ? [`its database has ${events} rows`] : []),
    ].map((what) => ({ kind: "stranger", what }));
  }

  async #look(): Promise<void> {
    if (await this.#app.isReady()) this.#timesReady += 1;
  }
}

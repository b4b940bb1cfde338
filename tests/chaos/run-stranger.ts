import { repeat } from "@booking-events/runtime";
import type pg from "pg";
import type { Violation } from "./check.ts";
import { createPool } from "./database.ts";
import type { Operate } from "./run-ops.ts";
import type { SupervisedApp } from "./supervise.ts";

const lookIntervalMs = 1_000;
const databaseName = "stranger";

interface Environment {
  apps: readonly SupervisedApp[];
  operate: Operate;
}

const erase = ["guests", "erase", "--partner", "acme", "--reference", "TRIP-0-0", "--reason", "chaos", "--dry-run"];
const operatorTimeoutMs = 60_000;

/** Another environment: it has a database of its own, and by mistake the same Redis and prefix. */
export class Stranger {
  readonly #pool: pg.Pool;
  readonly #environment: Environment;
  readonly #stopping = new AbortController();
  readonly #watching: Promise<void>;
  readonly #wereReady = new Set<string>();

  private constructor(pool: pg.Pool, environment: Environment) {
    this.#pool = pool;
    this.#environment = environment;
    this.#watching = repeat(() => this.#look(), lookIntervalMs, this.#stopping.signal);
  }

  /**
   * Starts it beside a system whose workers are ready.
   *
   * @param system.startStranger starts a worker and a lookup with the URL of their database
   */
  static async start(system: {
    databaseUrl: string;
    pool: pg.Pool;
    startStranger: (databaseUrl: string) => Promise<Environment>;
  }): Promise<Stranger> {
    await system.pool.query(`create database ${databaseName}`);
    const url = system.databaseUrl.replace(/\/[^/?]*(?=\?|$)/, `/${databaseName}`);
    return new Stranger(createPool(url), await system.startStranger(url));
  }

  /** @returns what it has done that only those of the right database may do */
  async finish(): Promise<Violation[]> {
    this.#stopping.abort();
    await this.#watching;
    const { rows } = await this.#pool.query<{ events: number }>(
      `select ((select count(*) from booking_events) + (select count(*) from dead_letters)
         + (select count(*) from bookings))::int as events`,
    );
    await this.#pool.end();
    const events = rows[0]?.events ?? 0;
    const { exitCode } = await this.#environment.operate(erase, AbortSignal.timeout(operatorTimeoutMs));
    return [
      ...[...this.#wereReady].map((name) => `${name} was ready`),
      ...(exitCode === 0 ? ["its operator could look for guests in the queue"] : []),
      ...(events > 0 ? [`its database has ${events} rows`] : []),
    ].map((what) => ({ kind: "stranger", what }));
  }

  async #look(): Promise<void> {
    for (const app of this.#environment.apps) if (await app.isReady()) this.#wereReady.add(app.name);
  }
}

import type { Queryable } from "@booking-events/store";
import pg from "pg";
import { begin } from "../connect.ts";

/**
 * The transaction of an attempt. It takes a connection only if the handler asks for something, so that handlers that need
 * no database hold none.
 */
export class LazyTransaction {
  readonly client: Queryable;
  readonly #pool: pg.Pool;
  readonly #timeoutMs: number;
  #begun: Promise<pg.PoolClient> | undefined;
  #hasEnded = false;
  #isBroken = false;

  /** @param timeoutMs how long the handler may go without a query */
  constructor(pool: pg.Pool, timeoutMs: number) {
    this.#pool = pool;
    this.#timeoutMs = timeoutMs;
    const query = async (...args: Parameters<Queryable["query"]>) => (await this.#connection()).query(...args);
    // Of the overloads, it lacks those that take a callback.
    this.client = { query: query as unknown as Queryable["query"] };
  }

  readonly #onEnd = () => {
    this.#isBroken = true;
  };

  /** The connection was lost, or there was none to be had. The handler is not to blame. */
  get isBroken(): boolean {
    return this.#isBroken;
  }

  /**
   * Commits, if the handler has used it.
   *
   * @param record adds to the transaction that the delivery is done. If it answers false, nothing counts
   * @returns `refused`: roll it back
   */
  async commit(record: (client: Queryable) => Promise<boolean>): Promise<"committed" | "unused" | "refused"> {
    if (this.#begun === undefined) {
      this.#hasEnded = true;
      return "unused";
    }
    const client = await this.#begun;
    try {
      if (!(await record(client))) return "refused";
      this.#hasEnded = true;
      await client.query("commit");
    } catch (error) {
      this.#isBroken ||= !isOfTransaction(error);
      throw error;
    }
    client.removeListener("end", this.#onEnd);
    client.release();
    this.#begun = undefined;
    return "committed";
  }

  /** Never fails. The connection is closed, since the handler may still send something on it. */
  async rollBack(): Promise<void> {
    this.#hasEnded = true;
    const client = await this.#begun?.catch(() => undefined);
    this.#begun = undefined;
    client?.removeListener("end", this.#onEnd);
    client?.release(true);
  }

  #connection(): Promise<pg.PoolClient> {
    if (this.#hasEnded) return Promise.reject(new Error("The attempt has ended, and with it the transaction."));
    this.#begun ??= this.#begin();
    return this.#begun;
  }

  async #begin(): Promise<pg.PoolClient> {
    let client: pg.PoolClient | undefined;
    try {
      client = await this.#pool.connect();
      client.once("end", this.#onEnd);
      await begin(client, this.#timeoutMs);
      return client;
    } catch (error) {
      this.#isBroken = true;
      client?.release(true);
      throw error;
    }
  }
}

const connectionErrors = /^(08|53|55P03|57|25P0[34]|25006)/;

/** What PostgreSQL reports of the handler's own statements, such as a constraint that is checked at the end. */
function isOfTransaction(error: unknown): boolean {
  return error instanceof pg.DatabaseError && !connectionErrors.test(error.code ?? "08");
}

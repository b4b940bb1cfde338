import type pg from "pg";
import { beginningOf } from "./pool.ts";
import { rollBack } from "./roll-back.ts";
import { settleAll } from "./settle-all.ts";

/** The transaction could not begin, so nothing in it can be the reason. */
export class NotBegun extends Error {
  override name = "NotBegun";
}

/**
 * Runs `work` in one transaction, which commits when `work` returns and rolls back when it throws.
 *
 * @throws NotBegun if there is no connection, or it can't begin a transaction; otherwise what failed
 */
export function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  return transact(pool, work, () => waitForDisk);
}

/** Of a transaction that reads, and sees everything as it was when it began. */
export const readOneSnapshot = "set transaction isolation level repeatable read, read only";

/**
 * @param end returns what must be sent before the commit
 * @param options.prepare what must be done with the connection before the transaction
 */
export async function transact<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
  end: (client: pg.PoolClient) => pg.QueryConfig | string,
  { prepare, isSnapshot = false }: { prepare?: (client: pg.PoolClient) => Promise<unknown>; isSnapshot?: boolean } = {},
): Promise<Result> {
  const client = await begin(pool, async (connected) => {
    await prepare?.(connected);
    await connected.query(`${beginningOf(pool)}${isSnapshot ? `; ${readOneSnapshot}` : ""}`);
  });
  try {
    const result = await work(client);
    await settleAll([client.query(end(client)), client.query("commit")]);
    client.release();
    return result;
  } catch (error) {
    await rollBack(client, error);
    throw error;
  }
}

async function begin(pool: pg.Pool, beginOn: (client: pg.PoolClient) => Promise<unknown>): Promise<pg.PoolClient> {
  let client: pg.PoolClient | undefined;
  try {
    client = await pool.connect();
    await beginOn(client);
    return client;
  } catch (error) {
    client?.release(true);
    throw new NotBegun("The transaction could not begin.", { cause: error });
  }
}

/**
 * Makes the commit wait until its WAL is on disk, even if the role or the database is configured otherwise, because an
 * event leaves Redis once it is committed. A stronger setting stays.
 *
 * This is set in the transaction, since a pooler may drop or refuse settings of a new connection. It is set at the end
 * of the transaction, since the isolation level can't be set after a query.
 */
export const waitForDisk = `select set_config('synchronous_commit', 'on', true)
  where current_setting('synchronous_commit') = 'off'`;

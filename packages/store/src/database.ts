import pg from "pg";

/** A pool, or one of its clients in a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

/** Limits of one connection, in milliseconds. Each makes a stuck database an error that the caller can wait out. */
const connectTimeoutMs = 5_000;
const statementTimeoutMs = 30_000;
/**
 * A little longer than the server's own limit: it speaks when the server can't. It runs from when a statement is sent, so
 * that statements which were sent together have it for all of them.
 */
const answerTimeoutMs = statementTimeoutMs + 5_000;
/** A frozen process must not hold its locks against all others for longer than this. */
const idleInTransactionTimeoutMs = 10_000;
/**
 * PostgreSQL gives up a connection whose other side takes no bytes for this long. While it sends to a frozen process
 * the limit above does not count.
 */
const tcpUserTimeoutMs = 15_000;
/** Longer than a frozen process can hold a lock by the two limits above, which act every few seconds. */
const lockTimeoutMs = 25_000;

/**
 * A pool of connections to PostgreSQL. `bigint` columns read as numbers: sequences and ids stay below 2^53.
 *
 * @param onError told when a connection breaks; the pool replaces it, and whatever ran on it fails by itself
 */
export function createPool(options: {
  databaseUrl: string;
  applicationName: string;
  maxConnections: number;
  onError: (error: Error) => void;
}): pg.Pool {
  const pool = new pg.Pool({
    connectionString: options.databaseUrl,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: connectTimeoutMs,
    statement_timeout: statementTimeoutMs,
    query_timeout: answerTimeoutMs,
    idle_in_transaction_session_timeout: idleInTransactionTimeoutMs,
    lock_timeout: lockTimeoutMs,
    options: `-c tcp_user_timeout=${tcpUserTimeoutMs}`,
    keepAlive: true,
    // A statement is sent while those before it are under way. PostgreSQL deals with them in their order.
    pipeline: true,
    types: { getTypeParser },
  });
  // An error event that nobody listens to would end the process, and the pool listens to idle connections only.
  pool.on("connect", (client) => client.on("error", options.onError));
  pool.on("error", () => {});
  return pool;
}

/** Thrown in a transaction that is to be rolled back though nothing went wrong with its connection. */
export class RollBack extends Error {
  override name = "RollBack";
}

/** PostgreSQL, or the way to it, failed before the transaction began: nothing in it can be the reason. */
export class NotBegun extends Error {
  override name = "NotBegun";
}

/**
 * Runs `work` in one transaction: committed when it returns, rolled back when it throws.
 *
 * @throws NotBegun when no connection can be had, or can begin a transaction; else what failed
 */
export async function inTransaction<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await begin(pool);
  try {
    const result = await work(client);
    await settleAll([client.query(waitForDisk), client.query("commit")]);
    client.release();
    return result;
  } catch (error) {
    client.release(!(await wasRolledBack(client, error)));
    throw error;
  }
}

/**
 * The commit waits until its WAL is on the disk, even if the role or the database is set up otherwise: an event that is
 * committed leaves Redis. A stronger setting stays. In the transaction, since a pooler may drop or refuse what a
 * connection asks for at its start; and at its end, since its isolation level can't be set after a query.
 */
const waitForDisk = `select set_config('synchronous_commit', 'on', true)
  where current_setting('synchronous_commit') = 'off'`;

/**
 * PostgreSQL takes each booking for one with as many events as the average one. To find two events of a booking that has
 * a hundred thousand, it would read them all and sort them, by a bitmap scan, which to it costs the same. Each of our
 * queries has an index in whose order it can read.
 */
const followIndexes = "set local enable_bitmapscan to off";

async function begin(pool: pg.Pool): Promise<pg.PoolClient> {
  let client: pg.PoolClient | undefined;
  try {
    client = await pool.connect();
    await client.query(`begin; ${followIndexes}`);
    return client;
  } catch (error) {
    client?.release(true);
    throw new NotBegun("No transaction could begin.", { cause: error });
  }
}

/**
 * How long statements of the transaction wait for a lock from here on, in milliseconds; or the connection's default.
 */
export async function setLockTimeout(client: Queryable, timeoutMs: number | "default"): Promise<void> {
  await client.query(`set local lock_timeout to ${timeoutMs}`);
}

/**
 * Waits for statements that were sent one behind the other, in the order in which they were sent. All of them are over
 * when it returns or throws, so that none can reach the connection after a rollback.
 *
 * @throws what the first that failed threw. In a transaction those behind it failed because of it
 */
export async function settleAll<Results extends unknown[]>(
  statements: [...{ [Place in keyof Results]: Promise<Results[Place]> }],
): Promise<Results> {
  await Promise.allSettled(statements);
  return (await Promise.all(statements)) as Results;
}

/**
 * Only a connection on which PostgreSQL itself reported the error, or nothing went wrong, is used again. After a
 * time-out of ours the answer may still be on its way, and would be taken for the answer to something else. After a
 * mistake of ours statements of the transaction may still be sent, and would become a part of another one.
 */
async function wasRolledBack(client: pg.PoolClient, error: unknown): Promise<boolean> {
  if (!(error instanceof pg.DatabaseError || error instanceof RollBack)) return false;
  try {
    await client.query("rollback");
    return true;
  } catch {
    return false;
  }
}

function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === pg.types.builtins.INT8 && format !== "binary") return Number;
  return pg.types.getTypeParser(oid, format ?? "text");
}

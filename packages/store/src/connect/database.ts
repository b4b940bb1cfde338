import { hash } from "node:crypto";
import pg from "pg";
import { leaveFormerPrimary, ServerClient } from "./server-client.ts";

/** A pool, or a client in a transaction. */
export type Queryable = Pick<pg.ClientBase, "query">;

export const defaultSchema = "public";

/** Limits of connections and statements. Each turns a database that hangs into an error, which the caller can wait out. */
const connectTimeoutMs = 5_000;
const statementTimeoutMs = 30_000;
/**
 * For a server that can't report its own time-out, and so a little longer than that. The time runs from when a
 * statement is sent, so statements that are sent together share it.
 */
const answerMarginMs = 5_000;
/** A frozen process must not block all others with its locks for longer than this. */
const idleInTransactionTimeoutMs = 10_000;
/**
 * PostgreSQL closes a connection whose other side takes no bytes for this long. It needs this limit as well, since a
 * transaction is not idle while PostgreSQL sends to a frozen process.
 */
const tcpUserTimeoutMs = 15_000;
/** Longer than the two limits above let a frozen process hold a lock. They act every few seconds. */
const lockTimeoutMs = 25_000;

/** The limits of a pool, where they differ from those above. */
interface PoolLimits {
  connectTimeoutMs?: number;
  statementTimeoutMs?: number;
  /** PostgreSQL then refuses every statement that writes. */
  isReadOnly?: boolean;
}

/**
 * Creates a pool of connections to PostgreSQL. `bigint` columns are read as numbers, since sequences and ids stay below
 * 2^53. Each statement runs in a transaction: the caller's, or one of its own.
 *
 * @param options.databaseUrl may name several hosts: see {@link readServers}
 * @param options.schema where our tables are. Default: `public`
 * @param options.onError called when a connection breaks. The pool replaces it, and the query on it fails
 */
export function createPool(options: {
  databaseUrl: string;
  schema?: string;
  applicationName: string;
  maxConnections: number;
  onError: (error: Error) => void;
  limits?: PoolLimits;
}): pg.Pool {
  const { limits = {} } = options;
  const pool = new LimitedPool(options.schema ?? defaultSchema, limits, {
    connectionString: options.databaseUrl,
    Client: ServerClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
    application_name: options.applicationName,
    max: options.maxConnections,
    connectionTimeoutMillis: limits.connectTimeoutMs ?? connectTimeoutMs,
    query_timeout: (limits.statementTimeoutMs ?? statementTimeoutMs) + answerMarginMs,
    keepAlive: true,
    // A statement is sent while earlier ones are still running. PostgreSQL runs them in order.
    pipeline: true,
    types: { getTypeParser },
  });
  // An error event without a listener would end the process, and the pool listens to idle connections only.
  pool.on("connect", (client) => client.on("error", options.onError));
  pool.on("error", () => {});
  pool.endWatch = leaveFormerPrimary(pool, options.databaseUrl);
  return pool;
}

/**
 * Gives a single statement a transaction of its own, with the limits of {@link beginWithLimits}. All go to the server
 * together, so they cost one round trip. Of the overloads of `query` it lacks those that take a callback.
 */
class LimitedPool extends pg.Pool {
  readonly schema: string;
  readonly begin: string;
  endWatch = () => {};

  constructor(schema: string, { statementTimeoutMs, isReadOnly }: PoolLimits, config: pg.PoolConfig) {
    super(config);
    this.schema = schema;
    const limits = statementTimeoutMs === undefined ? { schema } : { schema, statementTimeoutMs };
    this.begin = `${beginWithLimits(limits)}; ${followIndexes}${isReadOnly ? "; set transaction read only" : ""}`;
  }

  override end = (async (...done: []) => {
    this.endWatch();
    return super.end(...done);
  }) as pg.Pool["end"];

  override query = (async (...statement: Parameters<pg.ClientBase["query"]>) => {
    const client = await this.connect();
    try {
      const [, result] = await settleAll([
        client.query(this.begin),
        client.query(...statement) as unknown as Promise<unknown>,
        client.query("commit"),
      ]);
      client.release();
      return result;
    } catch (error) {
      client.release(!(await rollBack(client, error)));
      throw error;
    }
  }) as pg.Pool["query"];
}

/** Rolls a transaction back although its connection is fine. */
export class RollBack extends Error {
  override name = "RollBack";
}

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

/** @param end returns what must be sent before the commit */
async function transact<Result>(
  pool: pg.Pool,
  work: (client: pg.PoolClient) => Promise<Result>,
  end: (client: pg.PoolClient) => pg.QueryConfig | string,
): Promise<Result> {
  const client = await begin(pool);
  try {
    const result = await work(client);
    await settleAll([client.query(end(client)), client.query("commit")]);
    client.release();
    return result;
  } catch (error) {
    client.release(!(await rollBack(client, error)));
    throw error;
  }
}

/**
 * What PostgreSQL reports of a prepared statement whose columns have other types now, of one that is gone, and of a
 * second one with its name.
 */
export const staleStatement = ["0A000", "26000", "42P05"] as const;

/**
 * Like {@link inTransaction}, but PostgreSQL parses each statement with values only once for a connection, and plans it
 * once a second. For a few events, that takes it much longer than to run the statements.
 *
 * The texts of the statements stay prepared until the connection ends, so there must be few.
 *
 * Behind a pooler, nothing is prepared: the next transaction may get another connection to the server.
 */
export function inPreparedTransaction<Result>(
  pool: pg.Pool,
  work: (client: Queryable) => Promise<Result>,
): Promise<Result> {
  async function prepareAll(client: pg.PoolClient): Promise<Result> {
    if (!(await isDirect(client))) return work(client);
    const query = (text: string, values?: unknown[]) =>
      client.query(values === undefined ? text : { ...prepared(text), values });
    const [, , result] = await settleAll([
      discardOldPlans(client),
      client.query(planForAllValues),
      work({ query: query as Queryable["query"] }),
    ]);
    return result;
  }
  return transact(pool, prepareAll, (client) =>
    directConnections.get(client) === true ? prepared(waitForDisk) : waitForDisk,
  );
}

const directConnections = new WeakMap<pg.PoolClient, boolean>();

/**
 * Finds out whether the client is connected to PostgreSQL itself. A pooler gives a client a process number of its own,
 * by which the client may cancel statements.
 */
async function isDirect(client: pg.PoolClient): Promise<boolean> {
  const known = directConnections.get(client);
  if (known !== undefined) return known;
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const isSame = rows[0]?.pid === (client as unknown as { processID: number }).processID;
  directConnections.set(client, isSame);
  return isSame;
}

/**
 * A plan that was made for small tables may read them from end to end. PostgreSQL would keep it until the tables are
 * analyzed, however large they become meanwhile.
 */
const maxPlanAgeMs = 1_000;
const plansMadeAt = new WeakMap<pg.PoolClient, number>();

async function discardOldPlans(client: pg.PoolClient): Promise<void> {
  const now = performance.now();
  if (now - (plansMadeAt.get(client) ?? 0) <= maxPlanAgeMs) return;
  plansMadeAt.set(client, now);
  await client.query("discard plans");
}

/**
 * Without this, PostgreSQL would plan a statement for its values whenever these exclude partitions. The plan must suit
 * tables that are empty now, and would rather be read than their indexes.
 *
 * Before PostgreSQL 18, a table without an index, such as one of a single row, then looks so expensive to read that
 * PostgreSQL would compile the statement each time that it runs.
 */
const planForAllValues =
  "set local plan_cache_mode to force_generic_plan; set local enable_seqscan to off; set local jit to off";

function prepared(text: string): { name: string; text: string } {
  return { name: nameStatement(text), text };
}

const statementNames = new Map<string, string>();

/** A name means the same text in every process, even if a pooler passes as the server and mixes up connections. */
function nameStatement(text: string): string {
  const name = statementNames.get(text) ?? hash("sha256", text, "base64url");
  statementNames.set(text, name);
  return name;
}

/**
 * Makes the commit wait until its WAL is on disk, even if the role or the database is configured otherwise, because an
 * event leaves Redis once it is committed. A stronger setting stays.
 *
 * This is set in the transaction, since a pooler may drop or refuse settings of a new connection. It is set at the end
 * of the transaction, since the isolation level can't be set after a query.
 */
const waitForDisk = `select set_config('synchronous_commit', 'on', true)
  where current_setting('synchronous_commit') = 'off'`;

/**
 * PostgreSQL's planner assumes that every booking has an average number of events. To find two events of a booking with
 * a hundred thousand, it may read and sort all of them by a bitmap scan, which it expects to cost the same as an index
 * scan. All of our queries can read in the order of an index.
 */
const followIndexes = "set local enable_bitmapscan to off";

interface TransactionLimits {
  /** The only one in which tables are looked up. Undefined: as the connection is configured. */
  schema: string;
  isolation: "read committed" | "repeatable read";
  /** 0: none. */
  statementTimeoutMs: number;
  lockTimeoutMs: number;
  idleTimeoutMs: number;
}

/**
 * Returns the statements that begin a transaction. The limits hold for it, not for the connection: PgBouncer refuses
 * them as parameters of a new connection, or ignores them if it is told to, and gives each transaction another
 * connection to the server. The isolation level does not depend on how the database is configured.
 */
export function beginWithLimits(limits: Partial<TransactionLimits> = {}): string {
  return [
    `begin isolation level ${limits.isolation ?? "read committed"}`,
    `set local statement_timeout to ${limits.statementTimeoutMs ?? statementTimeoutMs}`,
    `set local lock_timeout to ${limits.lockTimeoutMs ?? lockTimeoutMs}`,
    `set local idle_in_transaction_session_timeout to ${limits.idleTimeoutMs ?? idleInTransactionTimeoutMs}`,
    `set local tcp_user_timeout to ${tcpUserTimeoutMs}`,
    // pg reads times in no other style, and returns null or text instead.
    "set local datestyle to iso",
    ...(limits.schema === undefined ? [] : [`set local search_path to ${pg.escapeIdentifier(limits.schema)}`]),
  ].join("; ");
}

/** @returns the schema of the tables that the pool reads and writes */
export function schemaOf(pool: pg.Pool): string {
  return limited(pool).schema;
}

function limited(pool: pg.Pool): LimitedPool {
  if (pool instanceof LimitedPool) return pool;
  throw new TypeError("The pool must be one from createPool.");
}

async function begin(pool: pg.Pool): Promise<pg.PoolClient> {
  let client: pg.PoolClient | undefined;
  try {
    client = await pool.connect();
    await client.query(limited(pool).begin);
    return client;
  } catch (error) {
    client?.release(true);
    throw new NotBegun("The transaction could not begin.", { cause: error });
  }
}

/** Sets how long later statements of the transaction wait for a lock. `default`: as at its beginning. */
export async function setLockTimeout(client: Queryable, timeoutMs: number | "default"): Promise<void> {
  await client.query(`set local lock_timeout to ${timeoutMs === "default" ? lockTimeoutMs : timeoutMs}`);
}

/**
 * Gives statements of the transaction more time, on our side too.
 *
 * @returns what they must be sent by. Others still have the time of every statement on our side
 */
export async function allowLongStatements(client: Queryable, timeoutMs: number): Promise<Queryable> {
  await client.query(`set local statement_timeout to ${timeoutMs}`);
  const query = (text: string, values?: unknown[]) =>
    client.query({ text, values, query_timeout: timeoutMs + answerMarginMs } as pg.QueryConfig);
  return { query: query as Queryable["query"] };
}

/**
 * Waits for statements that were sent together. All of them have ended when this returns or throws, so none can reach
 * the connection after a rollback.
 *
 * @throws the error of the first statement that failed. In a transaction, the later ones failed because of it
 */
export async function settleAll<Results extends unknown[]>(
  statements: [...{ [Place in keyof Results]: Promise<Results[Place]> }],
): Promise<Results> {
  await Promise.allSettled(statements);
  return (await Promise.all(statements)) as Results;
}

const uniqueViolation = "23505";

/**
 * Rows that are known to be missing hardly ever appear meanwhile, and `on conflict` costs PostgreSQL another search and
 * a lock for each.
 *
 * @returns false if another transaction has inserted one of the rows. Nothing but a rollback is possible then
 */
export async function wasFirst(insertion: Promise<unknown>): Promise<boolean> {
  try {
    await insertion;
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === uniqueViolation) return false;
    throw error;
  }
}

/** A former primary, and a prepared statement that is not what it was. */
const needsOtherConnection = new Set(["25006", ...staleStatement]);

/**
 * Rolls back, if the connection can be used again. That is so if PostgreSQL itself reported the error, or if nothing is
 * wrong with the connection. After a time-out on our side, the late answer would be taken for the answer to another
 * query. After a bug on our side, statements of the transaction may still be sent, and would become part of another
 * one. A server that refuses writes may no longer be the primary: a new connection finds out. A prepared statement that
 * is stale would fail each time: a new connection has none.
 */
async function rollBack(client: pg.PoolClient, error: unknown): Promise<boolean> {
  if (!(error instanceof pg.DatabaseError || error instanceof RollBack)) return false;
  if (error instanceof pg.DatabaseError && needsOtherConnection.has(error.code ?? "")) return false;
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

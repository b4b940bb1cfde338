import pg from "pg";
import { leaveFormerPrimary } from "./leave-former-primary.ts";
import { rollBack } from "./roll-back.ts";
import { type Breakable, ServerClient } from "./server-client.ts";
import { settleAll } from "./settle-all.ts";
import { answerMarginMs, beginWithLimits, defaultSchema, statementTimeoutMs } from "./transaction-limits.ts";

const connectTimeoutMs = 5_000;

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
export function createPool(
  options: {
    databaseUrl: string;
    schema?: string;
    applicationName: string;
    maxConnections: number;
    onError: (error: Error) => void;
    limits?: PoolLimits;
  } & Breakable,
): pg.Pool {
  const { limits = {}, signal } = options;
  const pool = new LimitedPool(options.schema ?? defaultSchema, limits, {
    ...(signal && { signal }),
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

export function beginningOf(pool: pg.Pool): string {
  if (pool instanceof LimitedPool) return pool.begin;
  throw new TypeError("The pool must be one from createPool.");
}

/**
 * Gives a single statement a transaction of its own, with the limits of {@link beginWithLimits}. All go to the server
 * together, so they cost one round trip. Of the overloads of `query` it lacks those that take a callback.
 */
class LimitedPool extends pg.Pool {
  readonly begin: string;
  endWatch = () => {};

  constructor(schema: string, { statementTimeoutMs, isReadOnly }: PoolLimits, config: pg.PoolConfig & Breakable) {
    super(config);
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
      await rollBack(client, error);
      throw error;
    }
  }) as pg.Pool["query"];
}

/**
 * PostgreSQL's planner assumes that every booking has an average number of events. To find two events of a booking with
 * a hundred thousand, it may read and sort all of them by a bitmap scan, which it expects to cost the same as an index
 * scan. All of our queries can read in the order of an index.
 */
const followIndexes = "set local enable_bitmapscan to off";

function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === pg.types.builtins.INT8 && format !== "binary") return Number;
  return pg.types.getTypeParser(oid, format ?? "text");
}

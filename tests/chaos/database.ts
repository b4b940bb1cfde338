import { ServerClient } from "@booking-events/store";
import pg from "pg";

const timeoutMs = 10_000;

/**
 * Opens a connection when one is needed and there is none, or it broke. A frozen server holds nobody up for long.
 *
 * @param schema default: that of PostgreSQL's user
 */
export function createPool(databaseUrl: string, schema?: string): pg.Pool {
  const pool = new pg.Pool({
    connectionString: databaseUrl,
    Client: ServerClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    ...(schema !== undefined && { options: `-c search_path=${schema}` }),
  });
  // A query that fails rejects as well. Without listeners, these events would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

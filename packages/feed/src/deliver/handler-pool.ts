import { type Breakable, ServerClient } from "@booking-events/store";
import pg from "pg";

/** For the transactions of handlers. Its types are pg's defaults, since handlers use it. */
export function createHandlerPool(
  options: { database: string; maxConnections: number } & Required<Breakable>,
): pg.Pool {
  const { database, maxConnections, signal } = options;
  const config: pg.PoolConfig & Breakable = {
    connectionString: database,
    Client: ServerClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
    application_name: "booking-events-deliver-handlers",
    max: maxConnections,
    connectionTimeoutMillis: 5_000,
    query_timeout: 35_000,
    keepAlive: true,
    signal,
  };
  const pool = new pg.Pool(config);
  // Without listeners, a connection that breaks would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

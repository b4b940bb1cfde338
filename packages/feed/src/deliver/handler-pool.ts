import { ServerClient } from "@booking-events/store";
import pg from "pg";

/** For the transactions of handlers. Its types are pg's defaults, since handlers use it. */
export function createHandlerPool({ database, maxConnections }: { database: string; maxConnections: number }): pg.Pool {
  const pool = new pg.Pool({
    connectionString: database,
    Client: ServerClient as unknown as NonNullable<pg.PoolConfig["Client"]>,
    application_name: "booking-events-deliver-handlers",
    max: maxConnections,
    connectionTimeoutMillis: 5_000,
    query_timeout: 35_000,
    keepAlive: true,
  });
  // Without listeners, a connection that breaks would end the process.
  pool.on("error", () => {});
  pool.on("connect", (client) => client.on("error", () => {}));
  return pool;
}

import { beginWithLimits, type Queryable, ServerClient } from "@booking-events/store";
import type pg from "pg";

/** Limits, in milliseconds. Each makes a stuck database or network an error after which the follower reconnects. */
const connectTimeoutMs = 5_000;
/** A little longer than the server's own limit for a statement, for when the server can't act on it. */
const answerTimeoutMs = 35_000;
/** How long to wait for a row that another follower or a migration has locked. */
const lockTimeoutMs = 5_000;

const idleInTransactionSessionTimeout = "25P03";

export class FeedClient extends ServerClient {
  /** PostgreSQL has ended the connection, because no statement came in the transaction for the time given to `begin`. */
  wasIdleTooLong = false;
  /** Called when that happens. */
  onIdleTooLong: (() => void) | undefined;
}

/**
 * A connection that asks for nothing at its start that PgBouncer refuses. Its types are pg's defaults, since consumers
 * use it too.
 */
export async function connect(
  databaseUrl: string,
  applicationName: string,
  queryTimeoutMs = answerTimeoutMs,
): Promise<FeedClient> {
  const client = new FeedClient({
    connectionString: databaseUrl,
    application_name: applicationName,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: queryTimeoutMs,
    keepAlive: true,
  });
  // A connection that breaks fails the next query. Without a listener it would also end the process.
  client.on("error", () => {});
  // PostgreSQL says why it ends a connection to the statement under way, or else to the listener above: here, to both.
  client.connection.on("errorMessage", ({ code }: pg.DatabaseError) => {
    if (code !== idleInTransactionSessionTimeout) return;
    client.wasIdleTooLong = true;
    client.onIdleTooLong?.();
  });
  try {
    await client.connect();
    return client;
  } catch (error) {
    disconnect(client);
    throw error;
  }
}

/** Doesn't wait for PostgreSQL, which may be frozen, nor does the process. A transaction under way is rolled back. */
export function disconnect(client: pg.Client): void {
  void client.end().catch(() => {});
  // The types lack it.
  (client as unknown as { unref: () => void }).unref();
}

/** @param idleTimeoutMs PostgreSQL ends the transaction when no statement comes for so long */
export async function begin(client: Queryable, idleTimeoutMs: number): Promise<void> {
  await client.query(beginWithLimits({ idleTimeoutMs, lockTimeoutMs }));
}

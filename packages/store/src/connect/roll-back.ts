import pg from "pg";

/** Rolls a transaction back although its connection is fine. */
export class RollBack extends Error {
  override name = "RollBack";
}

/**
 * What PostgreSQL reports of a prepared statement whose columns have other types now, of one that is gone, and of a
 * second one with its name.
 */
export const staleStatement = ["0A000", "26000", "42P05"] as const;

/** A former primary, and a prepared statement that is not what it was. */
const needsOtherConnection = new Set(["25006", ...staleStatement]);

/**
 * Rolls a failed transaction back, and gives its connection back to the pool if it can be used again. That is so if
 * PostgreSQL itself reported the error, or if nothing is wrong with the connection. After a time-out on our side, the
 * late answer would be taken for the answer to another query. After a bug on our side, statements of the transaction may
 * still be sent, and would become part of another one. A server that refuses writes may no longer be the primary: a new
 * connection finds out. A prepared statement that is stale would fail each time: a new connection has none.
 */
export async function rollBack(client: pg.PoolClient, error: unknown): Promise<void> {
  client.release(!(isUsableAfter(error) && (await succeeds(client.query("rollback")))));
}

function isUsableAfter(error: unknown): boolean {
  if (error instanceof pg.DatabaseError) return !needsOtherConnection.has(error.code ?? "");
  return error instanceof RollBack;
}

async function succeeds(query: Promise<unknown>): Promise<boolean> {
  try {
    await query;
    return true;
  } catch {
    return false;
  }
}

import type { Queryable } from "../connect/queryable.ts";
import { checkDatabase } from "./database-id.ts";

/**
 * Finds where the log begins, and whether the connection leads to the right database: workers need both in every
 * transaction.
 *
 * @param database the id that the database must have. Default: any
 * @returns the time before which the log has been removed, or is being removed; null: the log is whole
 * @throws OtherDatabase
 */
export async function readLogHorizon(client: Queryable, database?: string): Promise<Date | null> {
  // With values, even none, a statement can be prepared.
  const { rows } = await client.query<{ horizon: Date | null; database: string | null }>(
    "select (select horizon from log_retention) as horizon, (select id from database_id) as database",
    [],
  );
  if (database !== undefined) checkDatabase(rows[0]?.database, database);
  return rows[0]?.horizon ?? null;
}

import type { Queryable } from "../connect/queryable.ts";

/** @returns the time before which the log has been removed, or is being removed; null: the log is whole */
export async function readLogHorizon(client: Queryable): Promise<Date | null> {
  // With values, even none, a statement can be prepared.
  const { rows } = await client.query<{ horizon: Date | null }>("select horizon from log_retention", []);
  return rows[0]?.horizon ?? null;
}

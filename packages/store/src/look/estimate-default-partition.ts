import type { Queryable } from "../connect/queryable.ts";

/** Returns about how many events are in the log's default partition. */
export async function estimateDefaultPartition(client: Queryable): Promise<number> {
  const { rows } = await client.query<{ events: number }>(
    "select coalesce(pg_stat_get_live_tuples(to_regclass('booking_events_default')), 0) as events",
  );
  return rows[0]?.events ?? 0;
}

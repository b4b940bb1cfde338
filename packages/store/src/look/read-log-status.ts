import type { Queryable } from "../connect/queryable.ts";

export interface LogStatus {
  /** When the oldest event was received that is kept; null: there is none. */
  oldestEventAt: Date | null;
  /** An estimate. */
  eventsInDefaultPartition: number;
}

export async function readLogStatus(client: Queryable): Promise<LogStatus> {
  const { rows } = await client.query<LogStatus>(
    `select
       (select received_at from booking_events where outcome <> 'expired' order by id limit 1) as "oldestEventAt",
       coalesce(pg_stat_get_live_tuples(to_regclass('booking_events_default')), 0) as "eventsInDefaultPartition"`,
  );
  return rows[0] ?? { oldestEventAt: null, eventsInDefaultPartition: 0 };
}

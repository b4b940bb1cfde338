import type { Queryable } from "./database.ts";
import type { RetentionRules } from "./maintain.ts";

/** What maintenance would remove from one table. */
export interface Removal {
  table: string;
  /** For people. */
  what: string;
  /** What is older goes. Null, like the two others: it is kept forever. */
  before: Date | null;
  /** Estimates. */
  rows: number | null;
  bytes: number | null;
}

/** PostgreSQL estimates the rows from its statistics, so this reads no table. */
export async function estimateRemovals(client: Queryable, rules: RetentionRules): Promise<Removal[]> {
  const { retentionDays, deletedRetentionDays, deadLetterRetentionDays } = rules;
  const { rows: times } = await client.query<{ horizon: Date; deleted: Date; resolved: Date }>(
    `select log_horizon($1) as horizon, now() - make_interval(days => $2) as deleted,
       now() - make_interval(days => $3) as resolved`,
    [retentionDays, deletedRetentionDays, deadLetterRetentionDays],
  );
  const { horizon, deleted, resolved } = times[0] as (typeof times)[number];
  const log = retentionDays === 0 ? null : horizon;
  const partitions = log === null ? [] : await listOldPartitions(client, log);
  return [
    ...partitions.map((partition) => ({ ...partition, what: "events, with the partition", before: log })),
    await estimate(client, {
      ...{ table: "booking_events", what: "events, in no partition of one month", before: log },
      // The partitions above have none of them.
      condition: "id < first_event_id($1) and processed_at < $1",
      lessRows: partitions.reduce((sum, { rows }) => sum + rows, 0),
    }),
    await estimate(client, {
      ...{ table: "booking_changes", what: "changes", before: log, condition: "changed_at < $1" },
    }),
    await estimate(client, {
      ...{
        table: "bookings",
        what: "content of deleted bookings",
        before: deletedRetentionDays === 0 ? null : deleted,
      },
      condition: "deleted_at < $1 and content_removed_at is null",
    }),
    await estimate(client, {
      ...{ table: "dead_letters", what: "resolved letters", before: deadLetterRetentionDays === 0 ? null : resolved },
      condition: "resolved_at < $1",
    }),
    await estimate(client, {
      ...{ table: "dead_letters", what: "open letters", before: log },
      condition: "resolved_at is null and failed_at < $1",
    }),
  ];
}

async function listOldPartitions(client: Queryable, horizon: Date) {
  const { rows } = await client.query<{ table: string; rows: number; bytes: number }>(
    `select relname as table, greatest(reltuples, 0)::float8 as rows, pg_total_relation_size(partition)::float8 as bytes
     from log_partitions() join pg_class on pg_class.oid = partition
     where starts is not null and ends <= $1
     order by starts`,
    [horizon],
  );
  return rows;
}

async function estimate(
  client: Queryable,
  options: { table: string; what: string; before: Date | null; condition: string; lessRows?: number },
): Promise<Removal> {
  const { table, what, before, condition, lessRows = 0 } = options;
  if (before === null) return { table, what, before, rows: null, bytes: null };
  // A statement with parameters would be explained for any value of them.
  const values = condition.replaceAll("$1", `'${before.toISOString()}'::timestamptz`);
  const { rows: plans } = await client.query<{ "QUERY PLAN": [{ Plan: { "Plan Rows": number } }] }>(
    `explain (format json) select from ${table} where ${values}`,
  );
  const rows = Math.max((plans[0]?.["QUERY PLAN"][0].Plan["Plan Rows"] ?? 0) - lessRows, 0);
  return { table, what, before, rows, bytes: Math.round(rows * (await bytesPerRow(client, table))) };
}

/** With its share of the indexes. */
async function bytesPerRow(client: Queryable, table: string): Promise<number> {
  const { rows } = await client.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(oid)) / nullif(sum(greatest(reltuples, 0)), 0), 0)::float8 as bytes
     from pg_class
     where oid = $1::regclass or oid in (select inhrelid from pg_inherits where inhparent = $1::regclass)`,
    [table],
  );
  return rows[0]?.bytes ?? 0;
}

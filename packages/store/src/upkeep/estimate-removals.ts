import type { Queryable } from "../connect/queryable.ts";
import type { RetentionRules } from "./maintain.ts";

export interface Removal {
  table: string;
  /** For people. */
  what: string;
  /** What is older goes. Null, like the two others: it is kept forever. */
  before: Date | null;
  /** Of a table that is not small, estimates. */
  rows: number | null;
  bytes: number | null;
}

/** Smaller tables are counted, which takes a few milliseconds. PostgreSQL may know nothing of their rows yet. */
const countedBytes = 16 * 1_024 * 1_024;

/** PostgreSQL estimates the rows of larger tables from its statistics, so this reads none of them. */
export async function estimateRemovals(client: Queryable, rules: RetentionRules): Promise<Removal[]> {
  const { retentionDays, deletedRetentionDays, deadLetterRetentionDays } = rules;
  const { rows: times } = await client.query<{ horizon: Date; deleted: Date; resolved: Date }>(
    `select log_horizon($1, now()) as horizon, now() - make_interval(days => $2) as deleted,
       now() - make_interval(days => $3) as resolved`,
    [retentionDays, deletedRetentionDays, deadLetterRetentionDays],
  );
  const { horizon, deleted, resolved } = times[0] as (typeof times)[number];
  const log = retentionDays === 0 ? null : horizon;
  const partitions = log === null ? [] : await listOldPartitions(client, log);
  return [
    ...partitions.map((partition) => ({ ...partition, what: "events, with the partition", before: log })),
    await estimate(client, {
      table: "booking_events",
      what: "events, in no partition of one month",
      before: log,
      // The partitions above have none of them.
      condition: "id < first_event_id($1) and processed_at < $1",
      without: partitions,
    }),
    await estimate(client, { table: "booking_changes", what: "changes", before: log, condition: "changed_at < $1" }),
    await estimate(client, {
      table: "bookings",
      what: "content of deleted bookings",
      before: deletedRetentionDays === 0 ? null : deleted,
      condition: "deleted_at < $1 and content_removed_at is null",
    }),
    await estimate(client, {
      table: "dead_letters",
      what: "resolved letters",
      before: deadLetterRetentionDays === 0 ? null : resolved,
      condition: "resolved_at < $1",
    }),
    await estimate(client, {
      table: "dead_letters",
      what: "open letters",
      before: log,
      condition: "resolved_at is null and failed_at < $1",
    }),
    await estimate(client, {
      table: "operator_actions",
      what: "actions of operators",
      before: log,
      condition: "began_at < $1",
    }),
  ];
}

async function listOldPartitions(
  client: Queryable,
  horizon: Date,
): Promise<{ table: string; rows: number; bytes: number }[]> {
  const { rows: partitions } = await client.query<{ table: string; rows: number; bytes: number; ids: string }>(
    `select relname as table, greatest(reltuples, 0)::float8 as rows, pg_total_relation_size(partition)::float8 as bytes,
       format('id >= %L and id < %L', first_event_id(starts), first_event_id(ends)) as ids
     from log_partitions() join pg_class on pg_class.oid = partition
     where ends <= $1
     order by starts`,
    [horizon],
  );
  const counted = [];
  for (const { table, rows, bytes, ids } of partitions) {
    // Whoever may read the log may not read a partition by its own name.
    counted.push({ table, bytes, rows: bytes < countedBytes ? await count(client, "booking_events", ids) : rows });
  }
  return counted;
}

interface Condition {
  table: string;
  what: string;
  before: Date | null;
  /** With `$1` in the place of `before`. */
  condition: string;
  /** Partitions of the table that are not meant. */
  without?: { table: string; rows: number }[];
}

async function estimate(client: Queryable, options: Condition): Promise<Removal> {
  const { table, what, before, condition, without = [] } = options;
  if (before === null) return { table, what, before, rows: null, bytes: null };
  const size = await readSize(client, table);
  // A statement with parameters would be explained for any value of them.
  const values = condition.replaceAll("$1", `'${before.toISOString()}'::timestamptz`);
  const all = size.bytes < countedBytes ? await count(client, table, values) : await guess(client, table, values);
  const rows = Math.max(all - without.reduce((sum, partition) => sum + partition.rows, 0), 0);
  return {
    table,
    what,
    before,
    rows,
    bytes: rows === 0 ? 0 : Math.round((rows * size.bytes) / Math.max(size.rows, rows)),
  };
}

async function count(client: Queryable, table: string, condition: string): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from ${table} where ${condition}`,
  );
  return rows[0]?.count ?? 0;
}

async function guess(client: Queryable, table: string, condition: string): Promise<number> {
  const { rows: plans } = await client.query<{ "QUERY PLAN": [{ Plan: { "Plan Rows": number } }] }>(
    `explain (format json) select from ${table} where ${condition}`,
  );
  return plans[0]?.["QUERY PLAN"][0].Plan["Plan Rows"] ?? 0;
}

/** With its partitions and indexes. */
async function readSize(client: Queryable, table: string): Promise<{ bytes: number; rows: number }> {
  const { rows } = await client.query<{ bytes: number; rows: number }>(
    `select coalesce(sum(pg_total_relation_size(oid)), 0)::float8 as bytes,
       coalesce(sum(greatest(reltuples, 0)), 0)::float8 as rows
     from pg_class
     where oid = $1::regclass or oid in (select inhrelid from pg_inherits where inhparent = $1::regclass)`,
    [table],
  );
  return rows[0] ?? { bytes: 0, rows: 0 };
}

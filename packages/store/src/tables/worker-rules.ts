import type { Queryable } from "../connect/queryable.ts";
import type { RetentionRules } from "../upkeep/maintain.ts";

/** Settings of the workers by which others act and judge, too. */
export interface WorkerRules {
  retention: RetentionRules;
  duplicateWindowHours: number;
}

/** Records what a worker goes by. Writes nothing if that is recorded already. */
export async function recordWorkerRules(client: Queryable, rules: WorkerRules): Promise<void> {
  const { retentionDays, deletedRetentionDays, deadLetterRetentionDays } = rules.retention;
  await client.query(
    `update log_retention
     set retention_days = $1, deleted_retention_days = $2, dead_letter_retention_days = $3, duplicate_window_hours = $4
     where (retention_days, deleted_retention_days, dead_letter_retention_days, duplicate_window_hours)
       is distinct from ($1::integer, $2::integer, $3::integer, $4::integer)`,
    [retentionDays, deletedRetentionDays, deadLetterRetentionDays, rules.duplicateWindowHours],
  );
}

/** @returns null: no worker has recorded any */
export async function readWorkerRules(client: Queryable): Promise<WorkerRules | null> {
  const { rows } = await client.query<RetentionRules & { duplicateWindowHours: number }>(
    `select retention_days as "retentionDays", deleted_retention_days as "deletedRetentionDays",
       dead_letter_retention_days as "deadLetterRetentionDays", duplicate_window_hours as "duplicateWindowHours"
     from log_retention where retention_days is not null`,
  );
  if (rows[0] === undefined) return null;
  const { duplicateWindowHours, ...retention } = rows[0];
  return { retention, duplicateWindowHours };
}

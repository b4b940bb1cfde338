import type { Queryable } from "../connect/queryable.ts";

interface Replication {
  synchronousCommit: string;
  standbyNames: string;
  /** Null: the role may not see it. */
  synchronousStandbys: number | null;
}

/** Levels at which a commit waits until a standby has it on its disk. Our transactions turn `off` into `on`. */
const confirmingLevels = ["on", "off", "remote_apply"];

/**
 * Finds out whether a commit waits for standbys, so that one of them can take over without losing events.
 *
 * @param wanted the number of standbys that must have each commit on disk; 0: none
 * @returns sentences for an operator
 */
export async function findStandbyProblems(client: Queryable, wanted: number): Promise<string[]> {
  if (wanted === 0) return [];
  const { synchronousCommit, standbyNames, synchronousStandbys } = await readReplication(client);
  const confirming = countConfirming(standbyNames);
  return [
    ...(confirmingLevels.includes(synchronousCommit)
      ? []
      : [`PostgreSQL does not wait until standbys have a commit on disk: synchronous_commit is ${synchronousCommit}.`]),
    ...(confirming >= wanted
      ? []
      : [`PostgreSQL waits for ${confirming} of ${wanted} standbys: see synchronous_standby_names.`]),
    ...(synchronousStandbys === null || synchronousStandbys >= wanted
      ? []
      : [`PostgreSQL has ${synchronousStandbys} of ${wanted} synchronous standbys connected, so commits wait.`]),
  ];
}

async function readReplication(client: Queryable): Promise<Replication> {
  const { rows } = await client.query<Replication>(
    `select current_setting('synchronous_commit') as "synchronousCommit",
       current_setting('synchronous_standby_names') as "standbyNames",
       case when pg_has_role('pg_read_all_stats', 'usage')
         then (select count(*)::integer from pg_stat_replication where sync_state in ('sync', 'quorum'))
       end as "synchronousStandbys"`,
  );
  return rows[0] as Replication;
}

/** How many standbys a commit waits for. A list without a number means its first. */
function countConfirming(standbyNames: string): number {
  if (standbyNames.trim() === "") return 0;
  const [, count = "1"] = /^\s*(?:(?:first|any)\s*)?(\d+)\s*\(/i.exec(standbyNames) ?? [];
  return Number(count);
}

import { type DatabaseLocation, withBriefConnection } from "../connect/brief-connection.ts";
import type { Queryable } from "../connect/queryable.ts";
import { type DatabaseIdentity, readDatabaseIdentity } from "../tables/database-id.ts";
import { compareMigrations, type MigrationStatus } from "../upkeep/compare-migrations.ts";
import { type CollationProblem, findCollationProblems } from "../upkeep/find-collation-problems.ts";
import { findDurabilityProblems } from "../upkeep/find-durability-problems.ts";
import { findStandbyProblems } from "../upkeep/find-standby-problems.ts";
import { measureDatabaseClock } from "./read-database-times.ts";

/** What decides whether PostgreSQL keeps events, and guests' data. */
export interface DatabaseExamination {
  /** In sentences for an operator, which name the remedy as `Set: <name> = <value>.` or `Run: <statement>.` */
  durabilityProblems: string[];
  collationProblems: CollationProblem[];
  /** In sentences for an operator. Empty if no standby is wanted. */
  standbyProblems: string[];
  isStandby: boolean;
  /** Transactions are read-only by default. Managed services set that when the disk is full. */
  isReadOnly: boolean;
  /** As PostgreSQL writes them. */
  settings: {
    synchronousCommit: string;
    synchronousStandbys: string;
    autovacuum: string;
    trackCounts: string;
    errorVerbosity: string;
    statement: string;
    /** -1: off. */
    minDurationMs: number;
    /** -1: off. */
    minDurationSampleMs: number;
    /** 0: off. */
    transactionSampleRate: number;
    /** 0: no parameters. */
    parameterMaxLength: number;
    /** 0: no parameters. */
    parameterMaxLengthOnError: number;
  };
  migrations: MigrationStatus;
  /** Null: the database has not been migrated. */
  identity: DatabaseIdentity | null;
  /** How far PostgreSQL's clock is ahead of this host's. It is wrong by at most half of the time the answer took. */
  clockAheadMs: number;
  /** Null: the role may not read it. */
  folder: string | null;
  /** Whether a pooler may give each transaction another connection to the server; null: unknown. */
  isPooledByTransaction: boolean | null;
}

const applicationName = "booking-events-ops";

export async function examineDatabase(
  database: DatabaseLocation,
  options: { standbysToConfirm?: number } = {},
): Promise<DatabaseExamination> {
  return withBriefConnection(database, applicationName, async (client) => {
    const clockAheadMs = await measureDatabaseClock(client);
    const migrations = await compareMigrations(client);
    return {
      durabilityProblems: await findDurabilityProblems(client),
      collationProblems: await findCollationProblems(client),
      standbyProblems: await findStandbyProblems(client, options.standbysToConfirm ?? 0),
      ...(await readSettings(client)),
      migrations,
      identity: migrations.last === null ? null : await readDatabaseIdentity(client),
      clockAheadMs,
      isPooledByTransaction: await detectPooling(database, client),
    };
  });
}

async function readSettings(
  client: Queryable,
): Promise<Pick<DatabaseExamination, "isStandby" | "isReadOnly" | "settings" | "folder">> {
  const { rows } = await client.query<
    DatabaseExamination["settings"] & { isStandby: boolean; isReadOnly: boolean; folder: string | null }
  >(
    `select pg_is_in_recovery() as "isStandby",
       current_setting('default_transaction_read_only')::boolean as "isReadOnly",
       case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('data_directory') end as folder,
       current_setting('synchronous_commit') as "synchronousCommit",
       current_setting('synchronous_standby_names') as "synchronousStandbys",
       current_setting('autovacuum') as autovacuum, current_setting('track_counts') as "trackCounts",
       current_setting('log_error_verbosity') as "errorVerbosity", current_setting('log_statement') as statement,
       (select setting from pg_settings where name = 'log_min_duration_statement')::float8 as "minDurationMs",
       (select setting from pg_settings where name = 'log_min_duration_sample')::float8 as "minDurationSampleMs",
       (select setting from pg_settings where name = 'log_transaction_sample_rate')::float8 as "transactionSampleRate",
       (select setting from pg_settings where name = 'log_parameter_max_length')::float8 as "parameterMaxLength",
       (select setting from pg_settings where name = 'log_parameter_max_length_on_error')::float8
         as "parameterMaxLengthOnError"`,
  );
  const { isStandby, isReadOnly, folder, ...settings } = rows[0] as (typeof rows)[0];
  return { isStandby, isReadOnly, folder, settings };
}

/**
 * While another client is in a transaction, PgBouncer in transaction mode gives this client another connection to the
 * server than before.
 *
 * @returns null if it cannot be told, for example because the pool has only one connection
 */
async function detectPooling(database: DatabaseLocation, client: Queryable): Promise<boolean | null> {
  await client.query("commit");
  const before = await readBackend(client);
  try {
    // This transaction gets the connection that was used last.
    const after = await withBriefConnection(database, applicationName, () => readBackend(client));
    return before !== after;
  } catch {
    return null;
  }
}

async function readBackend(client: Queryable): Promise<number | undefined> {
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return rows[0]?.pid;
}

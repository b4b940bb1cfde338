import { escapeIdentifier } from "pg";
import type { Queryable } from "../connect/queryable.ts";

export interface CollationProblem {
  /** A sentence for an operator. */
  sentence: string;
  /** What corrects it, one after the other, each in a transaction of its own. */
  statements: string[];
}

/**
 * Finds collations whose order may have changed since indexes were built: the C library or ICU under the database is
 * another one. Such an index misses rows. Our own columns have the collation C, whose order never changes, so this is
 * about indexes that others have made.
 */
export async function findCollationProblems(client: Queryable): Promise<CollationProblem[]> {
  const { rows } = await client.query<{ database: string; collation: string | null; was: string; is: string }>(
    `select datname as database, null as collation, coalesce(datcollversion, 'none') as was,
       coalesce(pg_database_collation_actual_version(oid), 'none') as is
     from pg_database
     where datname = current_database() and datcollversion is distinct from pg_database_collation_actual_version(oid)
     union all
     select current_database(), collname, coalesce(collversion, 'none'),
       coalesce(pg_collation_actual_version(oid), 'none')
     from pg_collation
     where oid in (select unnest(indcollation) from pg_index) and collprovider <> 'd'
       and collversion is distinct from pg_collation_actual_version(oid)`,
    [],
  );
  return rows.map(({ database, collation, was, is }) => {
    const what =
      collation === null ? `database ${escapeIdentifier(database)}` : `collation ${escapeIdentifier(collation)}`;
    return {
      sentence: `Indexes may miss rows: the ${what} has version ${was} of its text order, and PostgreSQL sorts by ${is}.`,
      statements: [
        `reindex database concurrently ${escapeIdentifier(database)}`,
        `alter ${what} refresh collation version`,
      ],
    };
  });
}

/** Returns the same as sentences alone. */
export async function findCollationWarnings(client: Queryable): Promise<string[]> {
  const problems = await findCollationProblems(client);
  return problems.map(
    ({ sentence }) => `${sentence} See "After an upgrade of PostgreSQL" in docs/operations/change.md.`,
  );
}

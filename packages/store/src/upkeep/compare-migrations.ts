import { hash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Queryable } from "../connect/queryable.ts";

export const migrationsFolder = fileURLToPath(new URL("../../migrations", import.meta.url));

export interface MigrationStatus {
  /** The name of the last migration of the database; null: there is none. */
  last: string | null;
  /** Migrations of this release that the database lacks. */
  missing: string[];
  /** Migrations of a newer release, after which this one can't use the tables. */
  unknown: string[];
  /** Migrations of the database that are not as in this release, so it has another schema. */
  different: string[];
}

export async function compareMigrations(client: Queryable): Promise<MigrationStatus> {
  return compare(await readMigrations(migrationsFolder), await readApplied(client));
}

/** A newer release has the same migrations, and others after them. */
export function compare(files: MigrationFile[], applied: AppliedMigration[]): MigrationStatus {
  const digests = new Map(files.map(({ name, digest }) => [name, digest]));
  const last = files.at(-1)?.name ?? "";
  const isNewer = ({ name, digest }: AppliedMigration) => name > last && digest !== null;
  const excludesOlder = (one: AppliedMigration) => isNewer(one) && !one.allowsOlder;
  return {
    last: applied.at(-1)?.name ?? null,
    missing: files.map(({ name }) => name).filter((name) => !applied.some((one) => one.name === name)),
    unknown: applied.filter(excludesOlder).map(({ name }) => name),
    different: applied.filter((one) => !isNewer(one) && one.digest !== digests.get(one.name)).map(({ name }) => name),
  };
}

export interface MigrationFile {
  name: string;
  sql: string;
  digest: string;
  /** Releases without it can use the tables after it, such as those before. So one can go back to them. */
  allowsOlder: boolean;
}

/** A line of a migration that only adds what older code does not see. */
const allowsOlder = /^-- Older releases can go on after this\.$/m;

export async function readMigrations(folder: string): Promise<MigrationFile[]> {
  const names = (await readdir(folder)).toSorted();
  return Promise.all(
    names.map(async (file) => {
      const sql = await readFile(join(folder, file), "utf8");
      return { name: file.replace(/\.sql$/, ""), sql, digest: hash("sha256", sql), allowsOlder: allowsOlder.test(sql) };
    }),
  );
}

interface AppliedMigration {
  name: string;
  /** Null: it is not known, because another program has made the table. */
  digest: string | null;
  allowsOlder: boolean;
}

export async function readApplied(client: Queryable): Promise<AppliedMigration[]> {
  const { rows: tables } = await client.query<{ found: boolean }>(
    "select to_regclass('schema_migrations') is not null as found",
  );
  if (tables[0]?.found !== true) return [];
  const { rows } = await client.query<AppliedMigration>(
    `select name, to_jsonb(schema_migrations) ->> 'digest' as digest,
       coalesce((to_jsonb(schema_migrations) ->> 'allows_older')::boolean, false) as "allowsOlder"
     from schema_migrations order by name`,
  );
  return rows;
}

import { fileURLToPath } from "node:url";
import { runner } from "node-pg-migrate";
import type pg from "pg";

/** Empties the database, and runs only the first migrations, as an older release would have. */
export async function migrateTo(count: number, { pool, url }: { pool: pg.Pool; url: string }): Promise<void> {
  await pool.query("drop schema public cascade; create schema public");
  await runner({
    databaseUrl: url,
    dir: fileURLToPath(new URL("../../migrations", import.meta.url)),
    migrationsTable: "schema_migrations",
    direction: "up",
    count,
    log: () => {},
  });
}

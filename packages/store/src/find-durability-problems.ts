import type { Queryable } from "./database.ts";

/**
 * Settings by which PostgreSQL may lose, or damage, what it has committed when its machine crashes, each with the value
 * that it must have. `synchronous_commit` is not among them: our own transactions set it.
 */
const safeSettings = new Map([
  ["fsync", "on"],
  ["full_page_writes", "on"],
  // Goes on after an fsync that failed, as if all were written.
  ["data_sync_retry", "off"],
  // Makes rows that can't be read vanish.
  ["zero_damaged_pages", "off"],
]);

const tables = ["bookings", "booking_events", "booking_changes", "dead_letters"];

/**
 * Looks for what may lose events that PostgreSQL has committed.
 *
 * @returns sentences for an operator, each with what to set; empty when all is well
 */
export async function findDurabilityProblems(client: Queryable): Promise<string[]> {
  const { rows } = await client.query<{ name: string; value: string }>(
    `select name, setting as value from pg_settings where name = any($1)
     union all
     select relname, 'unlogged' from pg_class
     where relpersistence = 'u' and oid in (select to_regclass(name) from unnest($2::text[]) as name)`,
    [[...safeSettings.keys()], tables],
  );
  return rows.flatMap(({ name, value }) => {
    const safe = safeSettings.get(name);
    if (safe === value) return [];
    return safe === undefined
      ? [`PostgreSQL empties the table ${name} after a crash. Run: alter table ${name} set logged.`]
      : [`PostgreSQL may lose what it has committed: ${name} is ${value}. Set: ${name} = ${safe}.`];
  });
}

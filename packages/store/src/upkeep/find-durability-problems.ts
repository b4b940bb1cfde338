import type { Queryable } from "../connect/queryable.ts";

/**
 * With other values of these settings, PostgreSQL may lose or damage committed data when its machine crashes.
 * `synchronous_commit` is not in the list, since our transactions set it themselves.
 */
const safeSettings = new Map([
  ["fsync", "on"],
  ["full_page_writes", "on"],
  // If on, PostgreSQL continues after a failed fsync as if everything had been written.
  ["data_sync_retry", "off"],
  // If on, rows that can't be read disappear.
  ["zero_damaged_pages", "off"],
  ["ignore_checksum_failure", "off"],
  ["ignore_invalid_pages", "off"],
]);

/** With other values, PostgreSQL takes our statements and their parameters for something else. */
const expectedSettings = new Map([
  ["standard_conforming_strings", "on"],
  // If off, a missing idempotency key is the key "NULL".
  ["array_nulls", "on"],
]);

const tables = [
  "bookings",
  "booking_events",
  "booking_changes",
  "feed_position",
  "feed_readers",
  "feed_deliveries",
  "feed_handed",
  "dead_letters",
  "database_id",
  "digest_key",
  "erasures",
  "log_retention",
  "operator_actions",
  "subscriptions",
  "schema_migrations",
];

/**
 * Finds settings with which PostgreSQL may lose or misread events.
 *
 * @returns sentences for an operator, each with the remedy
 */
export async function findDurabilityProblems(client: Queryable): Promise<string[]> {
  const { rows } = await client.query<{ name: string; value: string }>(
    `select name, setting as value from pg_settings where name = any($1)
     union all
     select relname, 'unlogged' from pg_class left join pg_inherits on inhrelid = oid
     where relpersistence = 'u' and coalesce(inhparent, oid) in (select to_regclass(name) from unnest($2::text[]) as name)`,
    [[...safeSettings.keys(), ...expectedSettings.keys()], tables],
  );
  return rows.flatMap(({ name, value }) => {
    const [safe, expected] = [safeSettings.get(name), expectedSettings.get(name)];
    if (value === (safe ?? expected)) return [];
    if (safe !== undefined) return [`PostgreSQL may lose committed data: ${name} is ${value}. Set: ${name} = ${safe}.`];
    return expected === undefined
      ? [`PostgreSQL empties the table ${name} after a crash. Run: alter table ${name} set logged.`]
      : [`PostgreSQL misreads what it is sent: ${name} is ${value}. Set: ${name} = ${expected}.`];
  });
}

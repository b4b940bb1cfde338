import pg from "pg";
import { beginWithLimits, schemaOf } from "./database.ts";
import { ServerClient, type ServerConfig } from "./server-client.ts";

/** The indexes that migrations leave out if the table is large, with the same definitions. */
const indexes = [
  { name: "bookings_to_empty", on: "(deleted_at) where deleted_at is not null and content_removed_at is null" },
  { name: "bookings_to_convert", on: "(booking_key) where guest_hashes is null" },
  { name: "bookings_erased", on: "(booking_key) where erased_at is not null" },
  { name: "bookings_by_guest", on: "using gin (guest_hashes) where guest_hashes <> '{}'" },
  {
    name: "bookings_by_arrival",
    on: "(arrival_date, destination_country, destination_airport) where arrival_date is not null",
  },
  { name: "bookings_by_return", on: "(return_date) where return_date is not null" },
  { name: "bookings_by_reference", on: "using hash (reference)" },
  { name: "bookings_by_partner", on: "(partner, created_at, booking_key)" },
];

/**
 * Builds one missing index while others read and write, which takes minutes if the table is large. Several processes
 * may call this: one of them builds.
 *
 * @param options.signal ends a build. The next call begins it again
 * @returns whether there may be another one to build
 * @throws what PostgreSQL throws: 42501 if the user does not own the table
 */
export async function buildNextIndex(pool: pg.Pool, { signal }: { signal?: AbortSignal } = {}): Promise<boolean> {
  if ((await findMissing(pool)) === undefined) return false;
  return alone(pool, async (client) => {
    // Another process may have built it before we got the lock.
    const index = await findMissing(pool);
    if (index === undefined) return false;
    const schema = pg.escapeIdentifier(schemaOf(pool));
    const stop = () => void client.end().catch(() => {});
    signal?.addEventListener("abort", stop, { once: true });
    try {
      // A build that was cut off leaves an index that is not valid.
      await client.query(`drop index concurrently if exists ${schema}.${index.name}`);
      await client.query(`create index concurrently ${index.name} on ${schema}.bookings ${index.on}`);
      return true;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  });
}

async function findMissing(pool: pg.Pool): Promise<(typeof indexes)[number] | undefined> {
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
     where indrelid = 'bookings'::regclass and indisvalid`,
  );
  const found = new Set(rows.map(({ name }) => name));
  return indexes.find(({ name }) => !found.has(name));
}

/**
 * Runs `work` unless another process does so. The lock belongs to a transaction of a second connection, so it works
 * through a pooler too. The connection for `work` has none of our limits: a build takes as long as the table is large,
 * and must not be in a transaction. The other connection sends no parameters: PostgreSQL keeps the snapshot of a query
 * with parameters until the next query, and a build would wait for it.
 */
async function alone(pool: pg.Pool, work: (client: pg.Client) => Promise<boolean>): Promise<boolean> {
  const [locking, working] = [createClient(pool), createClient(pool)];
  try {
    await locking.connect();
    await locking.query(beginWithLimits({ schema: schemaOf(pool), statementTimeoutMs: 0, idleTimeoutMs: 0 }));
    const { rows } = await locking.query<{ isFree: boolean }>(
      `select pg_try_advisory_xact_lock(hashtextextended('indexes of ' || current_schema(), 0)) as "isFree"`,
    );
    if (rows[0]?.isFree !== true) return false;
    await working.connect();
    return await work(working);
  } finally {
    await Promise.allSettled([locking.end(), working.end()]);
  }
}

function createClient({ options }: pg.Pool): pg.Client {
  const { query_timeout: _, ...unlimited } = options;
  const client = new ServerClient(unlimited as ServerConfig);
  // If the connection breaks, the current query fails. Without a listener the process would end too.
  client.on("error", () => {});
  return client;
}

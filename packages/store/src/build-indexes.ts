import pg from "pg";
import { beginWithLimits, schemaOf } from "./database.ts";
import { ServerClient, type ServerConfig } from "./server-client.ts";

interface Index {
  name: string;
  on: string;
}

/** The indexes that migrations leave out if the table is large, with the same definitions. */
const ofBookings: Index[] = [
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

/** Each partition of the log has an index of its own, which is a part of the one with this name. */
const ofLog: Index[] = [
  { name: "booking_events_by_partner", on: "(partner, id)" },
  { name: "booking_events_by_outcome", on: "(outcome, id) where outcome not in ('created', 'updated')" },
];

const log = "booking_events";
/** Everybody waits behind a statement that waits for a table. */
const lockTimeoutMs = 1_000;

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
    const missing = await findMissing(pool);
    if (missing === undefined) return false;
    const stop = () => void client.end().catch(() => {});
    signal?.addEventListener("abort", stop, { once: true });
    try {
      await build(client, pg.escapeIdentifier(schemaOf(pool)), missing);
      return true;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  });
}

interface MissingIndex extends Index {
  table: string;
  /** The table has partitions, whose indexes become parts of this one. */
  isWhole?: boolean;
  /** Of a partition: the index of the whole table. */
  partOf?: string;
  /** Of a partition: the index is there, but no part of {@link partOf} yet. */
  isBuilt?: boolean;
}

async function build(client: pg.Client, schema: string, { table, name, on, isWhole, partOf, isBuilt }: MissingIndex) {
  if (isWhole) {
    await client.query(`set lock_timeout to ${lockTimeoutMs}`);
    await client.query(`create index ${name} on only ${schema}.${table} ${on}`);
    return;
  }
  if (!isBuilt) {
    // A build that was cut off leaves an index that is not valid.
    await client.query(`drop index concurrently if exists ${schema}.${name}`);
    await client.query(`create index concurrently ${name} on ${schema}.${table} ${on}`);
  }
  if (partOf === undefined) return;
  await client.query(`set lock_timeout to ${lockTimeoutMs}`);
  await client.query(`alter index ${schema}.${partOf} attach partition ${schema}.${name}`);
}

async function findMissing(pool: pg.Pool): Promise<MissingIndex | undefined> {
  const { rows } = await pool.query<{ name: string }>(
    `select relname as name from pg_index join pg_class on pg_class.oid = indexrelid
     where indrelid = 'bookings'::regclass and indisvalid`,
  );
  const found = new Set(rows.map(({ name }) => name));
  const missing = ofBookings.find(({ name }) => !found.has(name));
  return missing === undefined ? findMissingOfLog(pool) : { ...missing, table: "bookings" };
}

/** A log without partitions gets its indexes when it has been partitioned. */
async function findMissingOfLog(pool: pg.Pool): Promise<MissingIndex | undefined> {
  const { rows } = await pool.query<{ whole: string; hasWhole: boolean; partition: string; isBuilt: boolean }>(
    `select whole, to_regclass(whole) is not null as "hasWhole", partition.relname as partition,
       exists (
         select from pg_index where indexrelid = to_regclass(replace(whole, log.relname, partition.relname)) and indisvalid
       ) as "isBuilt"
     from unnest($1::text[]) with ordinality as wanted (whole, number), pg_class as log
     join pg_inherits on inhparent = log.oid
     join pg_class as partition on partition.oid = inhrelid
     where log.oid = 'booking_events'::regclass and log.relkind = 'p' and not exists (
       select from pg_index join pg_inherits as part on part.inhrelid = indexrelid
       where indrelid = partition.oid and part.inhparent = to_regclass(whole)
     )
     order by number, partition.relname
     limit 1`,
    [ofLog.map(({ name }) => name)],
  );
  const [missing] = rows;
  const index = ofLog.find(({ name }) => name === missing?.whole);
  if (missing === undefined || index === undefined) return undefined;
  if (!missing.hasWhole) return { ...index, table: log, isWhole: true };
  const { whole, partition, isBuilt } = missing;
  return { ...index, name: whole.replace(log, partition), table: partition, partOf: whole, isBuilt };
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

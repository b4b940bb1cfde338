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

/** Each partition has an index of its own, which is a part of the one with this name. */
const ofLog: Index[] = [
  { name: "booking_events_by_partner", on: "(partner, id)" },
  { name: "booking_events_by_outcome", on: "(outcome, id) where outcome not in ('created', 'updated')" },
];

const log = "booking_events";
const wanted = [
  ...ofBookings.map((index) => ({ ...index, table: "bookings" })),
  ...ofLog.map((index) => ({ ...index, table: log })),
];
const lockTimeoutMs = 1_000;

/**
 * Builds one missing index while others read and write, which takes minutes if the table is large. Several processes
 * may call this: one of them builds.
 *
 * @param options.signal ends a build. The next call begins it again
 * @returns the index's name, after which there may be another one to build; undefined: there is none, or others build it
 * @throws what PostgreSQL throws: 42501 if the user does not own the table, 55P03 if a table stays locked
 */
export async function buildNextIndex(
  pool: pg.Pool,
  { signal }: { signal?: AbortSignal } = {},
): Promise<string | undefined> {
  if ((await findMissing(pool)) === undefined) return undefined;
  return alone(pool, async (client) => {
    // Another process may have built it before we got the lock.
    const missing = await findMissing(pool);
    if (missing === undefined) return undefined;
    const stop = () => void cancel(pool, missing).finally(() => client.end().catch(() => {}));
    signal?.addEventListener("abort", stop, { once: true });
    try {
      signal?.throwIfAborted();
      await build(client, schemaOf(pool), missing);
      return missing.name;
    } finally {
      signal?.removeEventListener("abort", stop);
    }
  });
}

/** PostgreSQL goes on with a build whose client is gone. */
async function cancel(pool: pg.Pool, { table }: MissingIndex): Promise<void> {
  await pool
    .query("select pg_cancel_backend(pid) from pg_stat_progress_create_index where relid = to_regclass($1)", [table])
    .catch(() => {});
}

interface MissingIndex extends Index {
  table: string;
  /** What a build that was cut off has left is there: an index that is not valid. */
  hasRemains: boolean;
  /** The index is there, but no part of {@link partOf} yet. */
  isBuilt: boolean;
  /** Of a partition: the index of the whole table. */
  partOf: string | null;
  /** The index of the whole table is there. */
  hasWhole: boolean;
}

async function build(client: pg.Client, schema: string, missing: MissingIndex): Promise<void> {
  const { table, name, on, partOf, hasWhole, hasRemains, isBuilt } = missing;
  const qualified = `${pg.escapeIdentifier(schema)}.`;
  /** Writers wait behind it. Through a pooler, only a transaction has a limit of its own. */
  const alter = (statement: string) =>
    client.query(`${beginWithLimits({ schema, lockTimeoutMs })}; ${statement}; commit`);
  if (partOf !== null && !hasWhole) await alter(`create index ${partOf} on only ${log} ${on}`);
  if (!isBuilt) {
    if (hasRemains) await client.query(`drop index concurrently ${qualified}${name}`);
    await client.query(`create index concurrently ${name} on ${qualified}${table} ${on}`);
  }
  if (partOf !== null) await alter(`alter index ${partOf} attach partition ${name}`);
}

/**
 * Finds a table that lacks an index: `bookings`, the log, or a partition of it that has one of our names. A table of
 * which an index is being built is left alone, even if the process is gone that began it: to drop what it has built so
 * far would wait for it, and it would wait for that. The oldest partitions come last, since retention may drop them.
 */
async function findMissing(pool: pg.Pool): Promise<MissingIndex | undefined> {
  const { rows } = await pool.query<MissingIndex>(
    `with wanted as (
       select * from unnest($1::text[], $2::text[], $3::text[]) with ordinality as wanted (root, whole, "on", number)
     ), target as (
       select wanted.*, root.oid as root_oid, target.oid, target.relname,
         case when target.oid <> root.oid then whole end as part_of,
         replace(whole, root.relname, target.relname) as name
       from wanted
       join pg_class as root on root.oid = root::regclass
       join pg_class as target on target.relkind = 'r' and target.relnamespace = root.relnamespace and (
         target.oid = root.oid or root.relkind = 'p' and target.relname ~ '^booking_events_[0-9a-z_]+$' and exists (
           select from pg_inherits where inhparent = root.oid and inhrelid = target.oid and not inhdetachpending
         )
       )
     )
     select relname as table, name, "on", part_of as "partOf", coalesce(own.indisvalid, false) as "isBuilt",
       not coalesce(own.indisvalid, true) as "hasRemains",
       exists (
         select from pg_index join pg_class on pg_class.oid = indexrelid where indrelid = root_oid and relname = whole
       ) as "hasWhole"
     from target
     left join lateral (
       select indisvalid from pg_index join pg_class on pg_class.oid = indexrelid
       where indrelid = target.oid and pg_class.relname = name
     ) as own on true
     where case
         when part_of is null then own.indisvalid is not true
         else not exists (
           select from pg_index join pg_inherits on inhrelid = indexrelid join pg_class on pg_class.oid = inhparent
           where pg_index.indrelid = target.oid and pg_class.relname = whole
         )
       end
       and not exists (select from pg_stat_progress_create_index where relid = target.oid)
     order by number, relname ~ '_before_', relname desc
     limit 1`,
    [wanted.map(({ table }) => table), wanted.map(({ name }) => name), wanted.map(({ on }) => on)],
  );
  return rows[0];
}

/**
 * Runs `work` unless another process does so. The lock belongs to a transaction of a second connection, so it works
 * through a pooler too. The connection for `work` has none of our limits: a build takes as long as the table is large,
 * and must not be in a transaction. The other connection sends no parameters: PostgreSQL keeps the snapshot of a query
 * with parameters until the next query, and a build would wait for it.
 */
async function alone(
  pool: pg.Pool,
  work: (client: pg.Client) => Promise<string | undefined>,
): Promise<string | undefined> {
  const [locking, working] = [createClient(pool), createClient(pool)];
  try {
    await locking.connect();
    await locking.query(beginWithLimits({ schema: schemaOf(pool), statementTimeoutMs: 0, idleTimeoutMs: 0 }));
    const { rows } = await locking.query<{ isFree: boolean }>(
      `select pg_try_advisory_xact_lock(hashtextextended('indexes of ' || current_schema(), 0)) as "isFree"`,
    );
    if (rows[0]?.isFree !== true) return undefined;
    await working.connect();
    return await work(working);
  } finally {
    await Promise.allSettled([locking.end(), working.end()]);
  }
}

function createClient({ options }: pg.Pool): pg.Client {
  const { query_timeout: _, ...unlimited } = options;
  // The end of a client that pipelines waits for its queries.
  const client = new ServerClient({ ...unlimited, pipeline: false } as ServerConfig);
  // If the connection breaks, the current query fails. Without a listener the process would end too.
  client.on("error", () => {});
  return client;
}

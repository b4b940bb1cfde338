import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, describe, expect, test } from "vitest";
import { buildNextIndex } from "./build-indexes.ts";
import { createPool } from "./database.ts";
import { maintain } from "./maintain.ts";
import { migrate } from "./migrate.ts";
import { migrateTo } from "./testing/migrate-to.ts";

const { pool, url } = useTestDatabase();
const definitions = `select pg_get_indexdef(indexrelid) as definition, indisvalid as "isValid"
  from pg_index where indrelid = 'bookings'::regclass order by definition`;
/** The indexes of the log and of its partitions, and what they are parts of. They have other names than by hand. */
const ofLog = `select indrelid::regclass::text as "table", whole.inhparent::regclass::text as "partOf", indisvalid as "isValid",
    regexp_replace(pg_get_indexdef(indexrelid), '^.* USING', '') as definition
  from pg_index left join pg_inherits as whole on inhrelid = indexrelid
  where indrelid in (select 'booking_events'::regclass union all select relid from pg_partition_tree('booking_events'))
  order by "table", definition`;
let ofNewDatabase: unknown[];

/** A database of an older release that has a booking. */
beforeEach(async () => {
  ofNewDatabase ??= (await pool.query(definitions)).rows;
  await migrateTo(7, { pool, url });
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision,
       last_sequence, created_at, updated_at)
     values ('k', 'acme', 'trip', 'TRIP-1', 'active', gen_random_uuid(), 1, 1, 1, now(), now())`,
  );
  await migrate(url);
});

async function buildAll(): Promise<void> {
  while (await buildNextIndex(pool));
}

test("a database that had bookings gets the indexes of a new one", async () => {
  expect((await pool.query(definitions)).rows).not.toEqual(ofNewDatabase);
  await buildAll();
  expect((await pool.query(definitions)).rows).toEqual(ofNewDatabase);
});

test("an index whose build was cut off is built again", async () => {
  await buildAll();
  await pool.query("update pg_index set indisvalid = false where indexrelid = 'bookings_by_arrival'::regclass");
  await buildAll();
  expect((await pool.query(definitions)).rows).toEqual(ofNewDatabase);
});

test("bookings change while an index is built, and one process builds at a time", async () => {
  await buildAll();
  await pool.query("drop index bookings_by_return");
  const other = createPool({ databaseUrl: url, applicationName: "other", maxConnections: 2, onError: () => {} });
  const holder = await pool.connect();
  try {
    // A build waits for transactions that have written before it began.
    await holder.query("begin; update bookings set state = 'deleted'");
    const building = buildNextIndex(pool);
    await waitFor(async () => {
      const { rows } = await other.query(
        "select from pg_stat_progress_create_index where relid = 'bookings'::regclass",
      );
      expect(rows).toHaveLength(1);
    });
    expect(await buildNextIndex(other)).toBeUndefined();
    await holder.query("update bookings set state = 'active'; commit");
    expect(await building).toBe("bookings_by_return");
    expect((await pool.query(definitions)).rows).toEqual(ofNewDatabase);
  } finally {
    holder.release(true);
    await other.end();
  }
});

describe("the log's indexes", () => {
  let ofNewLog: unknown[];

  /** As the migration leaves a large log. */
  beforeEach(async () => {
    await buildAll();
    ofNewLog ??= (await pool.query(ofLog)).rows;
    await pool.query("drop index booking_events_by_partner, booking_events_by_outcome");
  });

  test("a large log gets those of a new one", async () => {
    await buildAll();
    expect((await pool.query(ofLog)).rows).toEqual(ofNewLog);
  });

  test("a build that was cut off is done again, and one that was not attached is attached", async () => {
    await buildAll();
    await pool.query(`
      drop index booking_events_by_partner;
      create index booking_events_by_partner on only booking_events (partner, id);
      create index booking_events_default_by_partner on booking_events_default (partner, id);
      update pg_index set indisvalid = false where indexrelid = 'booking_events_default_by_partner'::regclass`);
    const [partition] = (await pool.query("select partition from log_partitions()")).rows;
    const built = `${partition?.partition}_by_partner`;
    await pool.query(`create index ${built} on ${partition?.partition} (partner, id)`);
    const { rows: before } = await pool.query("select $1::regclass::oid as oid", [built]);
    await buildAll();
    expect((await pool.query(ofLog)).rows).toEqual(ofNewLog);
    expect((await pool.query("select $1::regclass::oid as oid", [built])).rows).toEqual(before);
  });

  test("a new partition has them while they are built for others", async () => {
    await pool.query(`
      create index booking_events_by_partner on only booking_events (partner, id);
      create table booking_events_2020_01 (like booking_events including all);
      do $$ begin execute format('alter table booking_events attach partition booking_events_2020_01
        for values from (%L) to (%L)', first_event_id('2020-01-01Z'), first_event_id('2020-02-01Z')); end $$`);
    await buildAll();
    const ofPartition = (rows: { table: string }[], name: string) =>
      rows.filter(({ table }) => table === name).map((row) => ({ ...row, table: "" }));
    const { rows } = await pool.query(ofLog);
    expect(ofPartition(rows, "booking_events_2020_01")).toEqual(ofPartition(rows, "booking_events_default"));
  });

  test("a log without partitions gets them, and keeps them when it gets partitions", async () => {
    await migrateTo(7, { pool, url });
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at)
       values (gen_random_uuid(), 'acme', 'create', 'trip', 'TRIP-1', 'k', 1, '{}', 'd', 'created', now())`,
    );
    await migrate(url);
    await pool.query("drop index booking_events_by_partner, booking_events_by_outcome");
    await buildAll();
    const built = `select count(*)::int as count from pg_index
      where indrelid = 'booking_events'::regclass and indexrelid::regclass::text ~ '_by_(partner|outcome)$'`;
    expect((await pool.query(built)).rows).toEqual([{ count: 2 }]);
    while ((await pool.query("select partition_log() as step")).rows[0].step !== null);
    expect((await pool.query(built)).rows).toEqual([{ count: 2 }]);
    expect(await buildNextIndex(pool)).toBeUndefined();
  });

  test("a partition that is not ours is left alone", async () => {
    await pool.query(`
      create table "booking_events_Old 2019" (like booking_events including all);
      do $$ begin execute format('alter table booking_events attach partition "booking_events_Old 2019"
        for values from (%L) to (%L)', first_event_id('2019-01-01Z'), first_event_id('2019-02-01Z')); end $$`);
    await buildAll();
    const { rows } = await pool.query(ofLog);
    expect(rows.filter(({ table }) => table !== '"booking_events_Old 2019"')).toEqual(
      ofNewLog.map((row) => expect.objectContaining({ ...(row as object), isValid: expect.any(Boolean) })),
    );
  });

  test("what keeps an index from being built is reported, and does not keep maintenance from the rest", async () => {
    await pool.query("create table booking_events_default_by_partner ()");
    const { problems } = await maintain(pool, {
      retentionDays: 0,
      deletedRetentionDays: 0,
      deadLetterRetentionDays: 0,
    });
    expect(problems).toEqual([expect.stringContaining("booking_events_default_by_partner")]);
    await pool.query("drop table booking_events_default_by_partner");
  });
});

describe("while a writer keeps an index from being built", () => {
  const progress = "select relid::regclass::text as table from pg_stat_progress_create_index";

  /** A build waits for transactions that have written before it began. */
  async function holdUp(work: (release: () => Promise<void>) => Promise<void>): Promise<void> {
    await buildAll();
    await pool.query("drop index bookings_by_return");
    const other = createPool({ databaseUrl: url, applicationName: "holder", maxConnections: 1, onError: () => {} });
    const holder = await other.connect();
    try {
      await holder.query("begin; update bookings set state = 'deleted'");
      await work(async () => void (await holder.query("rollback")));
    } finally {
      holder.release(true);
      await other.end();
    }
  }
  const untilBuilding = () => waitFor(async () => expect((await pool.query(progress)).rows).toHaveLength(1));

  test("an abort ends the build at once, in PostgreSQL too", async () => {
    await holdUp(async () => {
      const stop = new AbortController();
      const building = buildNextIndex(pool, { signal: stop.signal });
      await untilBuilding();
      stop.abort();
      await expect(building).rejects.toThrow();
      await waitFor(async () => expect((await pool.query(progress)).rows).toEqual([]));
    });
  });

  test("a build whose process is gone goes on, and nobody begins it again", async () => {
    await holdUp(async (release) => {
      const gone = createPool({ databaseUrl: url, applicationName: "gone", maxConnections: 1, onError: () => {} });
      const client = await gone.connect();
      const orphan = client.query(
        "create index concurrently bookings_by_return on bookings (return_date) where return_date is not null",
      );
      await untilBuilding();
      expect(await buildNextIndex(pool)).toBeUndefined();
      await release();
      await orphan;
      client.release(true);
      await gone.end();
      expect((await pool.query(definitions)).rows).toEqual(ofNewDatabase);
    });
  });
});

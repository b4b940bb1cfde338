import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { buildNextIndex } from "./build-indexes.ts";
import { createPool } from "./database.ts";
import { migrate } from "./migrate.ts";
import { migrateTo } from "./testing/migrate-to.ts";

const { pool, url } = useTestDatabase();
const definitions = `select pg_get_indexdef(indexrelid) as definition, indisvalid as "isValid"
  from pg_index where indrelid = 'bookings'::regclass order by definition`;
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
    expect(await buildNextIndex(other)).toBe(false);
    await holder.query("update bookings set state = 'active'; commit");
    expect(await building).toBe(true);
    expect((await pool.query(definitions)).rows).toEqual(ofNewDatabase);
  } finally {
    holder.release(true);
    await other.end();
  }
});

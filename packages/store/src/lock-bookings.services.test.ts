import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
import { lockBookings } from "./bookings.ts";
import { inPreparedTransaction, inTransaction } from "./database.ts";

const { pool } = useTestDatabase();

const keyOf = (number: number) => Buffer.alloc(32, number);

test("bookings are found by their index, although PostgreSQL plans that once, and there are none yet", async () => {
  const scans = await inPreparedTransaction(pool, async (client) => {
    await lockBookings(client, [keyOf(1)]);
    return client.query("select seq_scan, idx_scan from pg_stat_xact_user_tables where relname = 'bookings'");
  });
  expect(scans.rows).toEqual([{ seq_scan: 0, idx_scan: 1 }]);
});

test("transactions lock bookings in the same order, however PostgreSQL finds them, and wait for each other", async () => {
  // The rows are in the opposite order of the index.
  for (const number of [3, 2, 1]) {
    await pool.query(
      `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence,
         last_sequence, revision, created_at, updated_at)
       values ($1, 'acme', 'trip', $2, 'active', gen_random_uuid(), 1, 1, 1, now(), now())`,
      [keyOf(number), `TRIP-${number}`],
    );
  }
  const lockAll = (plan: string) =>
    inTransaction(pool, async (client) => {
      await client.query(plan);
      return lockBookings(client, [1, 2, 3].map(keyOf));
    });
  const holder = await pool.connect();
  await holder.query("begin");
  await lockBookings(holder, [keyOf(2)]);
  const locking = Promise.all([
    lockAll("set local enable_indexscan = off; set local enable_bitmapscan = off"),
    lockAll("set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = off"),
  ]);
  await waitFor(async () => {
    // Not through the holder: within a transaction, PostgreSQL repeats its first answer about activity.
    const { rows } = await pool.query(
      "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    expect(rows).toHaveLength(2);
  });
  await holder.query("commit");
  holder.release();
  const orders = (await locking).map((rows) => rows.map(({ reference }) => reference));
  expect(orders).toEqual([
    ["TRIP-1", "TRIP-2", "TRIP-3"],
    ["TRIP-1", "TRIP-2", "TRIP-3"],
  ]);
});

import { randomUUID } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
import { inPreparedTransaction } from "../connect/prepared-transaction.ts";
import type { Queryable } from "../connect/queryable.ts";
import { inTransaction } from "../connect/transaction.ts";
import { lockBookings } from "./bookings.ts";
import { updateBookings } from "./save-bookings.ts";

const { pool } = useTestDatabase();

const keyOf = (number: number) => Buffer.alloc(32, number);

test("bookings are found by their index, although PostgreSQL plans that once, and there are none yet", async () => {
  const scans = await inPreparedTransaction(pool, async (client) => {
    await lockBookings(client, [keyOf(1)]);
    return client.query(
      "select seq_scan, idx_scan from pg_stat_xact_user_tables where schemaname = 'public' and relname = 'bookings'",
    );
  });
  expect(scans.rows).toEqual([{ seq_scan: 0, idx_scan: 1 }]);
});

test("a plan that was made for one booking is not used for thousands", async () => {
  await fill(1, 1);
  await pool.query("analyze bookings");
  const update = () =>
    inPreparedTransaction(pool, async (client) => {
      const before = await countRead(client);
      await updateBookings(client, range(1, 50).map(bookingOf));
      return (await countRead(client)) - before;
    });
  await update();
  await fill(2, 3_000);
  // Until the plan is a second old, it may still be used.
  await waitFor(async () => expect(await update()).toBeLessThan(1_000));
});

const range = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, index) => first + index);

function bookingOf(number: number) {
  const state = {
    ...{ state: "active" as const, eventId: randomUUID(), sequence: 1, lastSequence: 1, content: null },
    ...{ createdAt: new Date(), updatedAt: new Date(), deletedAt: null },
  };
  const identity = {
    bookingId: randomUUID(),
    partner: "acme",
    referenceKind: "trip" as const,
    reference: `T-${number}`,
  };
  return { ...identity, bookingKey: longKeyOf(number), state, revision: 1, newContent: "kept" as const };
}

const longKeyOf = (number: number) => Buffer.from(number.toString().padStart(32, "x"));

async function fill(first: number, last: number): Promise<void> {
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, last_sequence,
       revision, created_at, updated_at, guest_hashes)
     select convert_to(lpad(n::text, 32, 'x'), 'UTF8'), 'acme', 'trip', 'T-' || n, 'active', gen_random_uuid(), 1, 1, 1,
       now(), now(), '{}'
     from generate_series($1::int, $2::int) as n`,
    [first, last],
  );
}

async function countRead(client: Queryable): Promise<number> {
  const { rows } = await client.query<{ read: number }>(
    "select seq_tup_read + coalesce(idx_tup_fetch, 0) as read from pg_stat_xact_user_tables where schemaname = 'public' and relname = 'bookings'",
  );
  return rows[0]?.read ?? 0;
}

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

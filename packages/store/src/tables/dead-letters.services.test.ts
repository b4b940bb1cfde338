import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeAll, expect, test } from "vitest";
import { inPreparedTransaction } from "../connect/prepared-transaction.ts";
import type { Queryable } from "../connect/queryable.ts";
import { areLettersClosed, groupDeadLetters, listDeadLetters } from "./dead-letters.ts";

const { pool, url } = useTestDatabase();

beforeAll(async () => {
  await pool.query(
    `insert into dead_letters (event_id, partner, reference, error_code, error, attempts, envelope, failed_at, resolved_at)
     select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'acme', 'TRIP-' || n / 2, '22012', '', 1, '',
       now() - n * interval '1 s', case when n % 2 = 0 then now() end
     from generate_series(0, 4999) as n`,
  );
  await execute(url, "vacuum analyze dead_letters");
});

/** How many dead letters the transaction of `client` has read. */
async function countRead(client: Queryable): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as count
     from pg_stat_xact_user_tables where relid = 'dead_letters'::regclass`,
    [],
  );
  return rows[0]?.count ?? Number.NaN;
}

test("a booking's dead letters are read by an index, also by a statement that is planned for any values", async () => {
  const filter = { partner: "acme", reference: "TRIP-7", includeResolved: true, limit: 10 };
  await inPreparedTransaction(pool, async (client) => {
    expect((await listDeadLetters(client, filter)).map(({ eventId }) => eventId.slice(-2))).toEqual(["15", "14"]);
    expect(await countRead(client)).toBe(2);
  });
});

test("tells of each event whether its dead letter is closed, by an index", async () => {
  const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;
  const asked = [1, 9_999, 2, 1, 4].map(idOf);
  await inPreparedTransaction(pool, async (client) => {
    expect(await areLettersClosed(client, asked)).toEqual([false, false, true, false, true]);
    expect(await countRead(client)).toBeLessThan(10);
  });
});

test("what is asked for applies together, and what is not leaves out nothing", async () => {
  const idsOf = async (filter: Parameters<typeof listDeadLetters>[1]) =>
    (await listDeadLetters(pool, filter)).map(({ eventId }) => Number(eventId.slice(-4)));
  expect(await idsOf({})).toHaveLength(2_500);
  expect(await idsOf({ includeResolved: true })).toHaveLength(5_000);
  const [first, second, third] = await idsOf({ limit: 3 });
  expect([first, second, third]).toEqual([4_999, 4_997, 4_995]);
  expect(await idsOf({ limit: 1, after: `00000000-0000-7000-8000-${String(second).padStart(12, "0")}` })).toEqual([
    third,
  ]);
  expect(await idsOf({ references: ["TRIP-1", "TRIP-2"], partner: "acme" })).toEqual([5, 3]);
  expect(await idsOf({ references: ["TRIP-1"], partner: "zenith" })).toEqual([]);
  expect(await idsOf({ errorCode: "another" })).toEqual([]);
  expect(await idsOf({ eventIds: ["00000000-0000-7000-8000-000000000001"] })).toEqual([1]);
  expect(await idsOf({ since: new Date(Date.now() + 60_000) })).toEqual([]);
  expect(await idsOf({ until: new Date(Date.now() + 60_000), limit: 1 })).toEqual([4_999]);
});

test("however many letters are open, no more are counted than was asked for", async () => {
  expect(await groupDeadLetters(pool, { limit: 100 })).toMatchObject([{ errorCode: "22012", count: 100 }]);
});

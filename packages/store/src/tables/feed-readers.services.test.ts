import { useTestDatabase } from "@booking-events/harness/test-database";
import { expect, test } from "vitest";
import { listFeedReaders } from "./feed-readers.ts";

const { pool } = useTestDatabase();

test("of a reader that can deliver nothing, only so many bookings are counted", async () => {
  await pool.query("insert into feed_readers (name, last_id) values ('copy', 0)");
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, retry_at, died_at)
     select 'copy', gen_random_uuid(), n, case when n % 2 = 0 then now() end, case when n % 2 = 1 then now() end
     from generate_series(1, 20004) as n`,
  );
  expect(await listFeedReaders(pool, 1)).toMatchObject([{ name: "copy", parked: 10_000, dead: 10_000 }]);
});

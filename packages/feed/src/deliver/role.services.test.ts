import { randomBytes } from "node:crypto";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { migrateAndGrant } from "@booking-events/store";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import { startDelivering } from "../testing/start-delivering.ts";

const { pool, url } = useTestDatabase();
const feed = new FeedOfBookings(pool);
const role = `reader_${randomBytes(4).toString("hex")}`;
const asReader = Object.assign(new URL(url), { username: role, password: "x" }).href;

beforeAll(async () => {
  await migrateAndGrant(url, { passwords: {} });
  await pool.query(`create role ${role} login password 'x' in role booking_events_reader`);
});
afterAll(() => pool.query(`drop role ${role}`));

test("a role with the rights of a reader can deliver, whatever happens to a delivery", async () => {
  const broken = { is: true };
  const consumer = startDelivering({
    ...{ database: asReader, from: "snapshot", filter: { countries: ["ES"] } },
    handle: async ({ change }, { client }) => {
      await client.query("select 1");
      if (broken.is && change.reference === "POISON") throw new Error("no");
    },
  });
  const content = { consumerTripDestinationCountryName: "Spain" };
  await feed.save("A", content);
  await feed.save("POISON", content);
  await waitFor(async () =>
    expect((await pool.query("select from feed_deliveries where change_id = 2")).rowCount).toBe(1),
  );
  await feed.erase("A");
  broken.is = false;
  await waitFor(async () => {
    const { rows } = await pool.query("select last_id, owner, snapshot_after from feed_readers");
    expect(rows).toEqual([{ last_id: 3, owner: role, snapshot_after: null }]);
    expect((await pool.query("select from feed_deliveries")).rowCount).toBe(0);
  });
  await consumer.stop();
  expect(consumer.handed.at(-1)?.change.change).toMatch(/erased|created/);
  expect((await pool.query("select from feed_handed")).rowCount).toBe(2);
});

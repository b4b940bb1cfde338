import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import { startDelivering, type TestConsumer } from "../testing/start-delivering.ts";
import { RetryAfter } from "./errors.ts";

const { pool, url } = useTestDatabase();
const feed = new FeedOfBookings(pool);
let consumer: TestConsumer | undefined;

beforeEach(() => feed.clear());
afterEach(() => consumer?.stop());

const place = async () => (await pool.query("select last_id from feed_readers")).rows[0]?.last_id;
const to = (country: string) => ({ consumerTripDestinationCountryName: country });

test("bookings of other partners are left out, and the place moves past them", async () => {
  consumer = startDelivering({ database: url, filter: { partners: ["one"] } });
  for (const partner of ["one", "two", "one"]) await feed.save(`${partner}-${Math.random()}`, {}, { partner });
  await waitFor(() => expect(consumer?.ids()).toEqual([1, 3]));
  await feed.save("last", {}, { partner: "two" });
  await waitFor(async () => expect(await place()).toBe(4), { timeoutMs: 20_000 });
  expect((await pool.query("select from feed_handed")).rowCount).toBe(0);
});

test("a booking is reported once more when it leaves, and when it is erased after that, also after a restart", async () => {
  const options = { database: url, mode: "every" as const, filter: { countries: ["ES"] } };
  consumer = startDelivering(options);
  await feed.save("OTHER", to("France"));
  await feed.save("T", to("Spain"));
  await feed.save("T", to("France"));
  await feed.save("T", to("Italy"));
  await waitFor(async () => expect(await place()).toBe(4), { timeoutMs: 20_000 });
  expect(consumer.ids()).toEqual([2, 3]);
  await consumer.stop();
  consumer = startDelivering(options);
  await feed.erase("OTHER");
  await feed.erase("T");
  await waitFor(() => expect(consumer?.ids()).toEqual([6]));
});

test("what the consumer was handed is remembered before the handler runs, so an erasure reaches it, whatever happened", async () => {
  const options = { database: url, filter: { countries: ["ES"] }, retry: { firstPauseMs: 1_000_000 } };
  consumer = startDelivering({ ...options, handle: () => Promise.reject(new Error("perhaps it arrived")) });
  await feed.save("T", to("Spain"));
  await waitFor(() => expect(consumer?.ids()).toEqual([1]));
  await consumer.stop();
  consumer = startDelivering(options);
  await feed.save("T", to("France"));
  await feed.erase("T");
  await waitFor(() => expect(consumer?.handed.at(-1)?.change.change).toBe("erased"));
});

test("a booking that leaves is reported again until the consumer has taken it, and then no more", async () => {
  let putOff = 0;
  consumer = startDelivering({
    ...{ database: url, filter: { countries: ["ES"] } },
    handle: async ({ change }) => {
      if (change.id > 1 && putOff++ === 0) throw new RetryAfter(10);
    },
  });
  await feed.save("T", to("Spain"));
  await waitFor(() => expect(consumer?.ids()).toEqual([1]));
  await feed.save("T", to("France"));
  await waitFor(() => expect(consumer?.ids()).toEqual([1, 2, 2]));
  await feed.save("T", to("Italy"));
  await waitFor(async () => expect(await place()).toBe(3));
  expect(consumer.ids()).toEqual([1, 2, 2]);
});

test("a change that the filter asks for is not lost because a later one overrides it", async () => {
  for (const note of [1, 2, 3]) await feed.save("T", { note }, { ageMs: 60_000 });
  consumer = startDelivering({ database: url, filter: { changes: ["created"] } });
  await waitFor(() => expect(consumer?.ids()).toEqual([1]));
  await feed.delete("T");
  await waitFor(() => expect(consumer?.ids()).toEqual([1, 4]));
});

test("what has waited behind a failed delivery is judged by the filter, too", async () => {
  const broken = { is: true };
  consumer = startDelivering({
    ...{ database: url, mode: "every", filter: { changes: ["created", "deleted"] } },
    handle: async () => {
      if (broken.is) throw new Error("no");
    },
  });
  await feed.save("T");
  await feed.save("T");
  await feed.delete("T");
  await waitFor(async () => expect(await place()).toBe(3));
  broken.is = false;
  await waitFor(async () => expect((await pool.query("select from feed_deliveries")).rowCount).toBe(0));
  expect(new Set(consumer.ids())).toEqual(new Set([1, 3]));
});

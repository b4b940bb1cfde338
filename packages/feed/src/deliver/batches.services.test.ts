import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ParkedDeliveriesError } from "../errors.ts";
import { startCuttableProxy } from "../testing/cuttable-proxy.ts";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import type { BatchOptions } from "./consumer-options.ts";
import { deliver } from "./deliver.ts";
import type { Delivery } from "./delivery.ts";
import { freshMs } from "./look-up-delivery.ts";

const { pool, url } = useTestDatabase();
const feed = new FeedOfBookings(pool);
const running: { controller: AbortController; ended: Promise<void> }[] = [];

function start(options: Partial<BatchOptions> & Pick<BatchOptions, "handleBatch"> & { database?: string }) {
  const controller = new AbortController();
  const batches: number[][] = [];
  const quiet = { info: () => {}, warn: () => {} };
  const ended = deliver({
    ...{ name: "test", database: url, signal: controller.signal, logger: quiet, batchSize: 3, ...options },
    handleBatch: async (deliveries, context) => {
      batches.push(deliveries.map(({ change }) => change.id));
      await options.handleBatch(deliveries, context);
    },
  });
  ended.catch(() => {});
  running.push({ controller, ended });
  return { batches, ended };
}

beforeEach(async () => {
  await feed.clear();
  await pool.query("drop table if exists effects; create table effects (change_id bigint)");
});
afterEach(async () => {
  for (const { controller } of running) controller.abort();
  await Promise.allSettled(running.splice(0).map(({ ended }) => ended));
});

const place = async () => (await pool.query("select last_id from feed_readers")).rows[0]?.last_id;
const effects = async () =>
  (await pool.query("select change_id from effects order by 1")).rows.map(({ change_id }) => change_id);

test("a batch has deliveries in order, and is tried again as a whole until it succeeds", async () => {
  for (const reference of ["A", "B", "C", "D"]) await feed.save(reference);
  let attempts = 0;
  const { batches } = start({
    handleBatch: async (deliveries, { client }) => {
      for (const { change } of deliveries) await client.query("insert into effects values ($1)", [change.id]);
      attempts += 1;
      expect(deliveries[0]?.attempt).toBe(attempts <= 3 ? attempts : 1);
      if (attempts < 3) throw new Error("no");
    },
  });
  await waitFor(async () => expect(await place()).toBe(4));
  expect(batches).toEqual([[1, 2, 3], [1, 2, 3], [1, 2, 3], [4]]);
  expect(await effects()).toEqual([1, 2, 3, 4]);
});

test("a booking that was erased is in a batch once, with nothing of the guest", async () => {
  for (const note of [1, 2]) await feed.save("GUEST", { note });
  await feed.save("A");
  await feed.erase("GUEST");
  const seen: unknown[] = [];
  const { batches } = start({
    mode: "every",
    handleBatch: async (deliveries) => {
      seen.push(...deliveries.map(({ change }) => [change.change, change.reference, change.payload === null]));
    },
  });
  await waitFor(async () => expect(await place()).toBe(4));
  expect(batches).toEqual([[4, 3]]);
  expect(seen).toEqual([
    ["erased", null, true],
    ["created", "A", false],
  ]);
});

test("what is overridden in a batch is left out, if the consumer is behind and wants the latest", async () => {
  for (const note of [1, 2]) await feed.save("A", { note }, { ageMs: 60_000 });
  await feed.save("B", {}, { ageMs: 60_000 });
  const { batches } = start({ handleBatch: async () => {} });
  await waitFor(async () => expect(await place()).toBe(3));
  expect(batches).toEqual([[2, 3]]);
});

test("a snapshot comes in batches, too", async () => {
  for (const reference of ["A", "B", "C", "D"]) await feed.save(reference);
  const { batches } = start({ from: "snapshot", handleBatch: async () => {} });
  await waitFor(async () =>
    expect((await pool.query("select snapshot_after from feed_readers")).rows).toEqual([{ snapshot_after: null }]),
  );
  expect(batches.map(({ length }) => length)).toEqual([3, 1]);
  await feed.save("E");
  await waitFor(() => expect(batches.at(-1)).toEqual([5]));
});

test("a batch that was on its way for too long is read again: a guest may have been erased since", async () => {
  await feed.save("A", { note: "the guest" });
  await feed.save("B");
  const proxy = await startCuttableProxy(url);
  const held = proxy.holdAnswer("the guest");
  const handed: Delivery[] = [];
  start({ database: proxy.url, handleBatch: async (deliveries) => void handed.push(...deliveries) });
  const goOn = await held;
  await feed.erase("A");
  await sleep(freshMs);
  goOn();
  await waitFor(async () => expect(await place()).toBe(3));
  expect(handed.map(({ change }) => change.id)).toEqual([3, 2]);
  proxy.cut();
});

test.each([
  ["waits for", "retry_at"],
  ["is dead for", "died_at"],
])("a name under which a booking %s handle is not delivered to in batches", async (_, column) => {
  await feed.save("A");
  await pool.query("insert into feed_readers (name, last_id) values ('test', 1)");
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, ${column}) select 'test', booking_id, 1, now() from bookings`,
  );
  const { ended } = start({ handleBatch: async () => {} });
  await expect(ended).rejects.toThrow(ParkedDeliveriesError);
  await pool.query("update feed_deliveries set done_id = 1, change_id = null, retry_at = null, died_at = null");
  await feed.save("B");
  const { batches } = start({ handleBatch: async () => {} });
  await waitFor(() => expect(batches).toEqual([[2]]));
});

const to = (country: string) => ({ consumerTripDestinationCountryName: country });

test("that a booking leaves the filter is reported again after a failure, and then no more", async () => {
  await feed.save("T", to("Spain"));
  let failures = 0;
  const { batches } = start({
    filter: { countries: ["ES"] },
    handleBatch: async ([first]) => {
      if (first?.change.id === 2 && failures++ === 0) throw new Error("no");
    },
  });
  await waitFor(async () => expect(await place()).toBe(1));
  await feed.save("T", to("France"));
  await waitFor(async () => expect(await place()).toBe(2));
  await feed.save("T", to("Italy"));
  await waitFor(async () => expect(await place()).toBe(3));
  expect(batches).toEqual([[1], [2], [2]]);
});

test("a booking that enters and leaves the filter within a batch is reported like any other", async () => {
  for (const country of ["Spain", "France", "Italy", "Spain"]) await feed.save("T", to(country));
  const { batches } = start({
    mode: "every",
    batchSize: 10,
    filter: { countries: ["ES"] },
    handleBatch: async () => {},
  });
  await waitFor(async () => expect(await place()).toBe(4));
  await feed.save("T", to("France"));
  await waitFor(async () => expect(await place()).toBe(5));
  expect(batches).toEqual([[1, 2, 4], [5]]);
});

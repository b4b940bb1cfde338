import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startCuttableProxy } from "../testing/cuttable-proxy.ts";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import { startDelivering, type TestConsumer } from "../testing/start-delivering.ts";
import { Deliverer } from "./deliverer.ts";

const { pool, url } = useTestDatabase({ maxConnections: 8 });
const feed = new FeedOfBookings(pool);
const running: TestConsumer[] = [];
/** Longer than a lease. */
const takeover = { timeoutMs: 30_000 };

function start(options: Partial<Parameters<typeof startDelivering>[0]> = {}): TestConsumer {
  const consumer = startDelivering({ database: url, ...options });
  running.push(consumer);
  return consumer;
}

async function query(text: string): Promise<Record<string, unknown>[]> {
  return (await pool.query(text)).rows;
}

const place = async () => (await query("select last_id from feed_readers where name = 'test'"))[0]?.["last_id"];
const isActive = (consumer: TestConsumer) =>
  waitFor(() => expect(consumer.events).toContainEqual({ type: "active", name: "test" }));

beforeEach(async () => {
  await feed.clear();
  await query("drop table if exists effects");
  await query("create table effects (change_id bigint)");
});

afterEach(async () => {
  await Promise.allSettled(running.splice(0).map(({ stop }) => stop()));
});

test("one process of a name delivers at a time, and another takes over when it stops", async () => {
  const first = start();
  await isActive(first);
  const second = start();
  await waitFor(() => expect(second.events).toContainEqual({ type: "standby", name: "test" }));
  await feed.save("A");
  await waitFor(() => expect(first.ids()).toEqual([1]));
  await first.stop();
  await isActive(second);
  await feed.save("B");
  await waitFor(() => expect(second.ids()).toEqual([2]));
});

test("another process takes over from one that is frozen, whose work then does not count", async () => {
  let thaw = () => {};
  const frozen = new Promise<void>((resolve) => {
    thaw = resolve;
  });
  const first = start({
    handle: async ({ change }, { client }) => {
      await client.query("insert into effects values ($1)", [change.id]);
      await frozen;
    },
  });
  await feed.save("A");
  await waitFor(() => expect(first.ids()).toEqual([1]));
  // As if it had been silent for the time of a lease, and another process had come.
  await query("update feed_readers set active_id = null");
  const second = start({
    handle: async ({ change }, { client }) => {
      await client.query("insert into effects values ($1)", [-change.id]);
    },
  });
  await waitFor(() => expect(second.ids()).toEqual([1]), takeover);
  thaw();
  await waitFor(async () => expect(await place()).toBe(1));
  await first.stop();
  expect(await query("select * from effects")).toEqual([{ change_id: -1 }]);
});

test("the lease of a dead process ends, though PostgreSQL's clock was ahead when it was renewed", async () => {
  const first = start();
  await isActive(first);
  await first.stop();
  await query("update feed_readers set active_id = gen_random_uuid(), seen_at = now() + interval '440 days'");
  const second = start();
  await feed.save("A");
  await waitFor(() => expect(second.ids()).toEqual([1]), takeover);
});

test("nobody takes the lease of a process that lives, when PostgreSQL's clock is set ahead", async () => {
  const first = start();
  await isActive(first);
  const second = start();
  await waitFor(() => expect(second.events).toContainEqual({ type: "standby", name: "test" }));
  // To it, this looks as if the clock had been set an hour ahead after the lease was renewed.
  await query("update feed_readers set seen_at = now() - interval '1 hour'");
  await sleep(4_000);
  await feed.save("A");
  await waitFor(() => expect(first.ids()).toEqual([1]));
  expect(second.events).not.toContainEqual({ type: "active", name: "test" });
});

test("a process takes what it has lost itself without waiting, as after an outage of PostgreSQL", async () => {
  const proxy = await startCuttableProxy(url);
  const consumer = start({ database: proxy.url });
  await isActive(consumer);
  proxy.cut();
  await waitFor(() => expect(consumer.logged.join()).toContain("another process may deliver now"), takeover);
  proxy.repair();
  await feed.save("A");
  await waitFor(async () => {
    // It never sees it unchanged.
    await query("update feed_readers set seen_at = clock_timestamp()");
    expect(consumer.ids()).toEqual([1]);
  }, takeover);
}, 60_000);

test("a process that has lost its lease aborts its handlers", async () => {
  const { ids, handed } = start({
    handle: async (_, { signal }) => {
      if (handed.length > 1) return;
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    },
  });
  await feed.save("A");
  await waitFor(() => expect(ids()).toEqual([1]));
  await query("update feed_readers set active_id = gen_random_uuid(), seen_at = now()");
  // Nothing of it was recorded, so it is handed over again once the other lease has ended.
  await waitFor(() => expect(ids()).toEqual([1, 1]), takeover);
  await waitFor(async () => expect(await place()).toBe(1));
});

test("a process whose lease ends while PostgreSQL does not answer aborts its handlers", async () => {
  const proxy = await startCuttableProxy(url);
  let hasAborted = false;
  const { ids } = start({
    database: proxy.url,
    handle: async (_, { signal }) => {
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
      hasAborted = true;
    },
  });
  await feed.save("A");
  await waitFor(() => expect(ids()).toEqual([1]));
  proxy.freeze();
  // Sooner than the 35 s after which an answer is no longer waited for.
  await waitFor(() => expect(hasAborted).toBe(true));
}, 60_000);

test("a process whose place is moved goes on from there", async () => {
  for (const reference of ["A", "B", "C"]) await feed.save(reference);
  const { ids } = start({ concurrency: 1 });
  await waitFor(async () => expect(await place()).toBe(3));
  await query("update feed_readers set last_id = 1, active_id = null");
  await waitFor(() => expect(ids()).toEqual([1, 2, 3, 2, 3]));
});

test("a reader that was removed is there again", async () => {
  const { ids } = start();
  await feed.save("A");
  await waitFor(() => expect(ids()).toEqual([1]));
  await query("delete from feed_readers");
  await waitFor(() => expect(ids()).toEqual([1, 1]));
});

test("deliveries go on when all connections break", async () => {
  const { ids } = start({ pollIntervalMs: 50 });
  for (const number of [1, 2, 3, 4, 5]) {
    await feed.save(`T-${number}`);
    await query(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'booking-events-deliver%'",
    );
    await waitFor(() => expect(new Set(ids()).size).toBe(number));
  }
  await waitFor(async () => expect(await place()).toBe(5));
});

test("delivering ends though PostgreSQL cannot be reached", async () => {
  const proxy = await startCuttableProxy(url);
  const { ids, logged, stop } = start({ database: proxy.url });
  await feed.save("A");
  await waitFor(() => expect(ids()).toEqual([1]));
  proxy.cut();
  await waitFor(() => expect(logged.join()).toContain("trying again"));
  await stop();
}, 60_000);

test("many idle consumers share three connections and few queries", async () => {
  const controller = new AbortController();
  const deliverer = new Deliverer({ database: url, logger: { info: () => {}, warn: () => {} } });
  const handed: string[] = [];
  for (let number = 0; number < 500; number += 1) {
    deliverer.add({
      ...{ name: `consumer-${number}`, from: "now", filter: { partners: [`partner-${number}`] } },
      handle: async ({ key }) => void handed.push(key),
      onStopped: () => {},
    });
  }
  const ended = deliverer.run(controller.signal);
  await waitFor(
    async () => expect(await query("select from feed_readers where active_id is not null")).toHaveLength(500),
    takeover,
  );
  await feed.save("T", {}, { partner: "partner-7" });
  await waitFor(() => expect(handed).toEqual(["consumer-7-1"]));
  const count = async () =>
    Number(
      (
        await query(
          "select pg_stat_clear_snapshot(), (select xact_commit from pg_stat_database where datname = current_database()) as n",
        )
      )[0]?.["n"],
    );
  // PostgreSQL counts what each connection has done some seconds later, such as adding 500 readers.
  await waitFor(
    async () => {
      const before = await count();
      await sleep(3_000);
      expect((await count()) - before).toBeLessThan(50);
    },
    { timeoutMs: 40_000 },
  );
  await waitFor(async () => {
    const connections = await query("select from pg_stat_activity where application_name = 'booking-events-deliver'");
    expect(connections.length).toBeLessThanOrEqual(3);
  });
  await waitFor(
    async () => expect(await query("select from feed_readers where last_id = 1")).toHaveLength(500),
    takeover,
  );
  controller.abort();
  await ended;
  expect(await query("select from feed_readers where active_id is not null")).toEqual([]);
}, 90_000);

test("a consumer that is removed while it begins again gives its lease back", async () => {
  await query("insert into feed_readers (name, last_id) values ('test', null)");
  const proxy = await startCuttableProxy(url);
  const controller = new AbortController();
  const deliverer = new Deliverer({ database: proxy.url, logger: { info: () => {}, warn: () => {} } });
  const handed: string[] = [];
  deliverer.add({ name: "test", handle: async ({ key }) => void handed.push(key), onStopped: () => {} });
  const held = proxy.holdAnswer("remove_spent_deliveries");
  const ended = deliverer.run(controller.signal);
  const goOn = await held;
  await deliverer.remove("test");
  goOn();
  await waitFor(async () => expect(await query("select active_id from feed_readers")).toEqual([{ active_id: null }]));
  await feed.save("A");
  const other = start();
  await waitFor(() => expect(other.ids()).toEqual([1]));
  controller.abort();
  await ended;
  expect(handed).toEqual([]);
});

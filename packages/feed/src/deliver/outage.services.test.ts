import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { fromSource, spawnApp } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { startCuttableProxy } from "../testing/cuttable-proxy.ts";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import { startDelivering, type TestConsumer } from "../testing/start-delivering.ts";

const { pool, url } = useTestDatabase();
const feed = new FeedOfBookings(pool);
let consumer: TestConsumer | undefined;
const longer = { timeoutMs: 30_000 };

beforeEach(() => feed.clear());
afterEach(() => consumer?.stop());

const rows = async () => (await pool.query("select * from feed_deliveries order by change_id")).rows;
const reader = async () => (await pool.query("select * from feed_readers")).rows[0];
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

test("a consumer that is down is only probed, and afterwards nothing has lost an attempt", async () => {
  const down = { is: true };
  consumer = startDelivering({
    database: url,
    retry: { firstPauseMs: 60_000 },
    concurrency: 4,
    handle: async () => {
      if (down.is) throw new Error("down");
    },
  });
  const { ids, events, handed } = consumer;
  for (const number of numbers(1, 30)) await feed.save(`T-${number}`);
  await waitFor(() => expect(events).toContainEqual({ type: "breaker-opened", name: "test" }));
  await waitFor(async () => expect((await reader()).breaker_opened_at).not.toBeNull());
  const calls = ids().length;
  expect(calls).toBeLessThanOrEqual(9);
  await waitFor(async () => {
    const found = await rows();
    expect(found.length).toBeGreaterThanOrEqual(5);
    for (const row of found) expect(row).toMatchObject({ attempts: 0, died_at: null });
  });
  // The first probe is of the first booking.
  await waitFor(() => expect(ids()[calls]).toBe(1), longer);
  down.is = false;
  await waitFor(async () => expect((await reader()).last_id).toBe(30), longer);
  await waitFor(async () => expect(await rows()).toEqual([]));
  expect(events).toContainEqual({ type: "breaker-closed", name: "test" });
  expect((await reader()).breaker_opened_at).toBeNull();
  expect(handed.every(({ attempt }) => attempt === 1)).toBe(true);
}, 60_000);

test("bookings that always fail keep nobody else from being handed over, however many they are", async () => {
  consumer = startDelivering({
    database: url,
    retry: { firstPauseMs: 60_000 },
    handle: async ({ change }) => {
      if (change.id <= 7) throw new Error("always");
    },
  });
  const { ids } = consumer;
  for (const number of numbers(1, 30)) await feed.save(`T-${number}`);
  await waitFor(async () => expect((await reader()).last_id).toBe(30), longer);
  expect(ids().filter((id) => id > 7)).toHaveLength(23);
  await waitFor(async () => expect((await rows()).map(({ change_id }) => change_id)).toEqual(numbers(1, 7)));
}, 60_000);

test("a process that starts during an outage probes, too", async () => {
  await feed.save("A");
  await pool.query(`insert into feed_readers (name, last_id, breaker_opened_at) values ('test', 0, now())`);
  consumer = startDelivering({ database: url });
  const { events } = consumer;
  await waitFor(() => expect(events).toContainEqual({ type: "breaker-closed", name: "test" }), longer);
  await waitFor(async () => expect((await reader()).breaker_opened_at).toBeNull());
});

async function startProcess(databaseUrl: string): Promise<ChildProcess> {
  const program = await bundleProgram(fromSource(`${import.meta.dirname}/../testing/deliver-until-told.ts`));
  const child = spawnApp([...program, databaseUrl, "test"], {}, { stdio: "ignore" });
  onTestFinished(() => void child.kill("SIGKILL"));
  return child;
}

test("a process ends though PostgreSQL has not answered that it listens", async () => {
  const proxy = await startCuttableProxy(url);
  const held = proxy.holdAnswer("LISTEN");
  const child = await startProcess(proxy.url);
  await held;
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
}, 20_000);

test("a process ends though PostgreSQL no longer answers", async () => {
  const proxy = await startCuttableProxy(url);
  const child = await startProcess(proxy.url);
  await feed.save("A");
  await waitFor(async () => expect((await reader())?.last_id).toBe(1));
  proxy.freeze();
  // It is asked for changes every second, and so waits for an answer.
  await sleep(1_500);
  child.kill("SIGTERM");
  expect(await once(child, "exit")).toEqual([0, null]);
}, 20_000);

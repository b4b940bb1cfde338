import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import type { SingleOptions } from "./consumer-options.ts";
import { type DeliverOptions, deliver } from "./deliver.ts";
import type { Delivery, DeliveryContext } from "./delivery.ts";
import type { DeliveryEvent } from "./delivery-event.ts";

const { pool, url } = useTestDatabase({ maxConnections: 8 });
const feed = new FeedOfBookings(pool);

/** They end with the test that has started them. */
const running: { controller: AbortController; ended: Promise<unknown> }[] = [];
const fast = { firstPauseMs: 20, longestPauseMs: 100, giveUpAfterMs: 1_000_000 };

function start(
  options: Partial<Omit<SingleOptions, "handle">> & Partial<DeliverOptions> = {},
  handle?: SingleOptions["handle"],
) {
  const controller = new AbortController();
  const handed: Delivery[] = [];
  const events: DeliveryEvent[] = [];
  const logged: string[] = [];
  const log = (details: object, message: string) => logged.push(`${message} ${JSON.stringify(details)}`);
  const ended = deliver({
    ...{ name: "test", database: url, signal: controller.signal, logger: { info: log, warn: log }, retry: fast },
    observe: (event: DeliveryEvent) => events.push(event),
    handle: async (delivery: Delivery, context: DeliveryContext) => {
      handed.push(delivery);
      await handle?.(delivery, context);
    },
    ...options,
  } as DeliverOptions);
  ended.catch(() => {});
  running.push({ controller, ended });
  const stop = () => {
    controller.abort();
    return ended;
  };
  const ids = () => handed.map(({ change }) => change.id);
  return { handed, ids, events, logged, stop, ended };
}

beforeEach(async () => {
  await feed.clear();
  await pool.query(
    "drop table if exists effects; create table effects (change_id bigint, booking_id uuid, number bigint generated always as identity)",
  );
});

afterEach(async () => {
  for (const { controller } of running) controller.abort();
  await Promise.allSettled(running.splice(0).map(({ ended }) => ended));
});

async function place(name = "test"): Promise<number | undefined> {
  const { rows } = await pool.query("select last_id from feed_readers where name = $1", [name]);
  return rows[0]?.last_id;
}

async function rows(): Promise<Record<string, unknown>[]> {
  const { rows } = await pool.query("select * from feed_deliveries order by booking_id");
  return rows;
}

const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

describe("changes", () => {
  test("of different bookings are handed over beside each other, and the place moves past them", async () => {
    for (const number of numbers(1, 20)) await feed.save(`T-${number}`, { note: "a" });
    let most = 0;
    let now = 0;
    const { handed, ids } = start({ concurrency: 4 }, async () => {
      now += 1;
      most = Math.max(most, now);
      await sleep(5);
      now -= 1;
    });
    await waitFor(async () => expect(await place()).toBe(20));
    expect(ids().toSorted((one, other) => one - other)).toEqual(numbers(1, 20));
    expect(most).toBe(4);
    expect(handed[0]).toMatchObject({ key: "test-1", attempt: 1, changedFields: expect.arrayContaining(["note"]) });
    await waitFor(async () => expect(await rows()).toEqual([]));
  });

  test("of one booking come one after the other, in order", async () => {
    const { ids } = start({ concurrency: 4 }, () => sleep(20));
    for (const note of ["a", "b", "c", "d"]) await feed.save("T", { note });
    await waitFor(async () => expect(await place()).toBe(4));
    expect(ids()).toEqual([1, 2, 3, 4]);
  });

  test("come as soon as they are committed", async () => {
    const { ids } = start({ pollIntervalMs: 1_000_000 });
    await waitFor(async () => expect(await place()).toBe(0));
    for (const number of numbers(1, 3)) {
      await feed.save(`T-${number}`);
      await waitFor(() => expect(ids()).toEqual(numbers(1, number)));
    }
  });
});

describe("a booking whose handler fails", () => {
  test("waits alone, and is tried again", async () => {
    let isBroken = true;
    const { ids } = start({}, async ({ change }) => {
      if (change.reference === "POISON" && isBroken) throw new Error("no");
    });
    await feed.save("POISON");
    for (const number of numbers(1, 5)) await feed.save(`T-${number}`);
    await waitFor(async () => expect(await place()).toBe(6));
    await waitFor(() => expect(ids().filter((id) => id === 1).length).toBeGreaterThan(2));
    isBroken = false;
    await waitFor(async () => expect(await rows()).toEqual([]));
  });
});

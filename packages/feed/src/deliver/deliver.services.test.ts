import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { ExactNumber } from "@booking-events/schema";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FeedGapError, ForeignReaderError } from "../errors.ts";
import { tablesIn } from "../tables.ts";
import { startCuttableProxy } from "../testing/cuttable-proxy.ts";
import { FeedOfBookings } from "../testing/feed-of-bookings.ts";
import { startDelivering, type TestConsumer } from "../testing/start-delivering.ts";
import { findDue } from "./deliveries.ts";
import type { DeliveryContext } from "./delivery.ts";
import { RetryAfter, StopDelivering } from "./errors.ts";
import { freshMs } from "./look-up-delivery.ts";

const { pool, url } = useTestDatabase({ maxConnections: 8 });
const feed = new FeedOfBookings(pool);
const neverMs = 1_000_000;

const running: TestConsumer[] = [];

function start(options: Partial<Parameters<typeof startDelivering>[0]> = {}): TestConsumer {
  const consumer = startDelivering({ database: url, ...options });
  running.push(consumer);
  return consumer;
}

beforeEach(async () => {
  await feed.clear();
  await pool.query("drop table if exists effects");
  await pool.query("create table effects (change_id bigint, booking_id uuid)");
});

afterEach(async () => {
  await Promise.allSettled(running.splice(0).map(({ stop }) => stop()));
});

async function query(text: string): Promise<Record<string, unknown>[]> {
  return (await pool.query(text)).rows;
}

async function place(name = "test"): Promise<unknown> {
  return (await query(`select last_id from feed_readers where name = '${name}'`))[0]?.["last_id"];
}

const rows = () => query("select * from feed_deliveries order by change_id, done_id");
const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);
const inOrder = (ids: number[]) => ids.toSorted((one, other) => one - other);
/** A handler that waits until the test lets it go on. */
function gate() {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { passed: promise, open: () => resolve() };
}

test("a logger that throws ends it with that error, rather than a part of it unnoticed", async () => {
  const logger = {
    info() {},
    warn() {
      throw new Error("the disk is full");
    },
  };
  const { ended } = start({ database: "postgres://127.0.0.1:1/none", listenUrl: null, logger });
  await expect(ended).rejects.toThrow("the disk is full");
});

describe("changes", () => {
  test("of different bookings are handed over beside each other, and the place moves past them", async () => {
    for (const number of numbers(1, 20)) await feed.save(`T-${number}`);
    const [most, now] = [{ count: 0 }, { count: 0 }];
    const { ids } = start({
      concurrency: 4,
      handle: async () => {
        now.count += 1;
        most.count = Math.max(most.count, now.count);
        await sleep(5);
        now.count -= 1;
      },
    });
    await waitFor(async () => expect(await place()).toBe(20));
    expect(inOrder(ids())).toEqual(numbers(1, 20));
    expect(most.count).toBe(4);
    await waitFor(async () => expect(await rows()).toEqual([]));
  });

  test("that are done out of turn leave nothing behind once the place has passed them", async () => {
    const blocked = gate();
    const { ids } = start({ concurrency: 2, handle: async ({ change }) => change.id === 1 && blocked.passed });
    await feed.save("SLOW");
    await feed.save("QUICK");
    await waitFor(async () => expect(await rows()).toMatchObject([{ done_id: 2 }]));
    // The lease is renewed while the row is still needed.
    const readRenewedAt = async () => (await query("select seen_at from feed_readers"))[0]?.["seen_at"];
    const before = await readRenewedAt();
    await waitFor(async () => expect(await readRenewedAt()).not.toEqual(before));
    blocked.open();
    await waitFor(async () => expect([await rows(), await place()]).toEqual([[], 2]));
    expect(inOrder(ids())).toEqual([1, 2]);
  });

  test("of one booking come one after the other, in order, though there are many slots", async () => {
    const now = { count: 0 };
    const { ids } = start({
      concurrency: 4,
      handle: async () => {
        now.count += 1;
        expect(now.count).toBe(1);
        await sleep(10);
        now.count -= 1;
      },
    });
    for (const note of ["a", "b", "c", "d"]) await feed.save("T", { note });
    await waitFor(async () => expect(await place()).toBe(4));
    expect(ids()).toEqual([1, 2, 3, 4]);
  });

  test("come as soon as they are committed, without polling", async () => {
    const { ids } = start({ pollIntervalMs: neverMs });
    await waitFor(async () => expect(await place()).toBe(0));
    for (const number of numbers(1, 3)) {
      await feed.save(`T-${number}`);
      await waitFor(() => expect(ids()).toEqual(numbers(1, number)));
    }
  });

  test("say what they hold and held, which fields have changed, and have a key that is their own", async () => {
    await feed.save("T", { note: "a", price: 1, nested: { deep: [1] } });
    await feed.save("T", { note: "b", nested: { deep: [1] }, more: null });
    await feed.delete("T");
    const { handed } = start();
    await waitFor(() => expect(handed).toHaveLength(3));
    const all = ["consumerTripPartnerExternalReference", "more", "nested", "note"];
    expect(handed.map(({ changedFields }) => changedFields?.toSorted())).toEqual([
      ["consumerTripPartnerExternalReference", "nested", "note", "price"],
      ["more", "note", "price"],
      all,
    ]);
    expect(handed.map(({ key, attempt }) => [key, attempt])).toEqual([1, 2, 3].map((id) => [`test-${id}`, 1]));
    expect(handed[1]?.change).toMatchObject({ payload: { note: "b" }, previousPayload: { note: "a" } });
  });

  test("of a number count as such if its value differs, even where a double does not", async () => {
    await feed.save("T", { n: new ExactNumber("9007199254740993"), same: new ExactNumber("1.10e1") });
    await feed.save("T", { n: new ExactNumber("9007199254740992"), same: 11 });
    const { handed } = start();
    await waitFor(() => expect(handed[1]?.changedFields).toEqual(["n"]));
  });

  test("are handed over again by the next process only if they were not recorded", async () => {
    for (const number of numbers(1, 4)) await feed.save(`T-${number}`);
    const { ids } = start({
      handle: async ({ change }, { signal }) => {
        const isFirst = ids().filter((id) => id === change.id).length === 1;
        if (change.id === 2 && isFirst) await new Promise((_, reject) => signal.addEventListener("abort", reject));
      },
    });
    await waitFor(async () => expect((await rows()).map((row) => row["done_id"])).toEqual([3, 4]));
    expect(await place()).toBe(1);
    await query("update feed_readers set active_id = null");
    await waitFor(async () => expect(await place()).toBe(4));
    expect(inOrder(ids())).toEqual([1, 2, 2, 3, 4]);
    await waitFor(async () => expect(await rows()).toEqual([]));
  });
});

describe("a consumer begins", () => {
  test.each([
    ["beginning", [3, 4, 5]],
    ["now", [5]],
    [{ after: 3 }, [4, 5]],
  ] as const)("%j", async (from, expected) => {
    for (const number of numbers(1, 4)) await feed.save(`T-${number}`);
    await query("delete from booking_changes where id < 3");
    await query("update feed_position set kept_from = 3");
    const { ids, events } = start({ from });
    await waitFor(() => expect(events).toContainEqual({ type: "active", name: "test" }));
    await feed.save("T-5");
    await waitFor(async () => expect(await place()).toBe(5));
    expect(inOrder(ids())).toEqual(expected);
  });

  test("with all bookings as they are, also deleted and erased ones, and goes on with the changes after that", async () => {
    for (const reference of ["A", "B", "C", "OLD"]) await feed.save(reference, { note: "first" });
    await feed.save("A", { note: "second" });
    await feed.delete("B");
    await feed.erase("C");
    await query("delete from booking_changes where id <= 4");
    await query("update feed_position set kept_from = 5");
    const { handed } = start({ from: "snapshot", mode: "every", concurrency: 1 });
    await waitFor(async () => expect(await place()).toBe(7));
    await waitFor(() => expect(handed).toHaveLength(4));
    await feed.save("A", { note: "third" });
    await waitFor(() => expect(handed).toHaveLength(5));
    const seen = handed.slice(0, 4).map(({ change, standsForEarlier, key }) => ({
      ...{ id: change.bookingId, change: change.change, note: change.payload?.["note"], reference: change.reference },
      ...{ standsForEarlier, key },
    }));
    const one = { standsForEarlier: true };
    expect(seen).toEqual(
      [
        { ...one, reference: "A", id: feed.idOf("A"), change: "updated", note: "second", key: "test-5" },
        { ...one, reference: "B", id: feed.idOf("B"), change: "deleted", note: undefined, key: "test-6" },
        { ...one, reference: null, id: feed.idOf("C"), change: "erased", note: undefined, key: "test-7" },
        {
          ...one,
          reference: "OLD",
          id: feed.idOf("OLD"),
          change: "created",
          note: "first",
          key: `test-${feed.idOf("OLD")}-1`,
        },
      ].toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    );
    expect(handed[4]).toMatchObject({ key: "test-8", change: { previousPayload: { note: "second" } } });
  });

  test("a snapshot that goes on after a restart, and hands over no booking twice that was recorded", async () => {
    for (const number of numbers(1, 6)) await feed.save(`T-${number}`);
    const blocked = gate();
    const sorted = numbers(1, 6).toSorted((one, other) => (feed.idOf(`T-${one}`) < feed.idOf(`T-${other}`) ? -1 : 1));
    const [, second = 0, ...behind] = sorted;
    const idsBehind = behind.map((number) => feed.idOf(`T-${number}`));
    const first = start({
      from: "snapshot",
      concurrency: 2,
      handle: async ({ change }, { signal }) => {
        if (change.reference !== `T-${second}`) return;
        await Promise.race([blocked.passed, new Promise((_, reject) => signal.addEventListener("abort", reject))]);
      },
    });
    await waitFor(async () => {
      const recorded = (await rows()).map((row) => (row as { booking_id: string }).booking_id);
      expect(recorded).toEqual(expect.arrayContaining(idsBehind));
    });
    await query("update feed_readers set active_id = null");
    await waitFor(() => expect(first.ids().filter((id) => id === second)).toHaveLength(2));
    expect(first.ids()).toHaveLength(7);
    blocked.open();
    await waitFor(async () =>
      expect(await query("select snapshot_after from feed_readers")).toEqual([{ snapshot_after: null }]),
    );
    await waitFor(async () => expect(await rows()).toEqual([]));
    expect(first.ids()).toHaveLength(7);
  });

  test("again when it has been reset, and has forgotten what waited", async () => {
    for (const number of numbers(1, 3)) await feed.save(`T-${number}`);
    const { ids } = start({
      handle: () => Promise.reject(new Error("no")),
      concurrency: 1,
      retry: { firstPauseMs: neverMs },
    });
    await waitFor(async () => expect(await rows()).toHaveLength(3));
    await query("update feed_readers set last_id = null, active_id = null");
    await waitFor(() => expect(ids()).toEqual([1, 2, 3, 1, 2, 3]));
  });

  describe("if it has been reset, and changes after the one that it is to begin after were removed,", () => {
    beforeEach(async () => {
      for (const number of numbers(1, 4)) await feed.save(`T-${number}`);
      await query("delete from booking_changes where id < 3; update feed_position set kept_from = 3");
      await query("insert into feed_readers (name, last_id) values ('test', null)");
    });

    test("at the oldest if it asks for that", async () => {
      const { ids } = start({ from: { after: 1, orOldest: true } });
      await waitFor(() => expect(ids()).toEqual([3, 4]));
    });

    test("not at all otherwise, since it would not hear what was deleted", async () => {
      const { ids, ended } = start({ from: { after: 1 } });
      await expect(ended).rejects.toThrow(/gap after id 1: .* from: "snapshot" is needed/);
      expect([ids(), await query("select last_id from feed_readers")]).toEqual([[], [{ last_id: null }]]);
    });
  });
});

describe("a booking whose handler fails", () => {
  test("goes before others that are due if its guest arrives soon", async () => {
    for (const number of numbers(1, 3)) await feed.save(`T-${number}`);
    const failing = start({
      retry: { firstPauseMs: neverMs, longestPauseMs: neverMs, giveUpAfterMs: 10 * neverMs },
      handle: async () => Promise.reject(new Error("not now")),
    });
    await waitFor(async () => expect(await rows()).toHaveLength(3));
    await failing.stop();
    await query("update bookings set consumer_trip_arrival_date = current_date + 1 where reference = 'T-3'");
    await query("update feed_deliveries set retry_at = now()");
    const { ids } = start({ concurrency: 1 });
    await waitFor(() => expect(ids()).toEqual([3, 1, 2]));
  });

  test("is not due at once because it failed while others are asked for", async () => {
    await query("insert into feed_readers (name, last_id) values ('test', 0)");
    const client = await pool.connect();
    try {
      await client.query("begin");
      await query(
        `insert into feed_deliveries (reader, booking_id, change_id, since_id, attempts, first_failed_at, last_failed_at,
           retry_at, failure)
         values ('test', gen_random_uuid(), 1, 1, 1, now(), now(), now() + interval '1 hour', 'no')`,
      );
      const [due] = await findDue(client, tablesIn("public"), { names: ["test"], limit: 10 });
      expect(due?.dueInMs).toBeGreaterThan(0);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });

  test("does not wait for as long as PostgreSQL's clock was ahead when it failed", async () => {
    await feed.save("T-1");
    const failing = start({
      retry: { firstPauseMs: neverMs, longestPauseMs: neverMs, giveUpAfterMs: 10 * neverMs },
      handle: async () => Promise.reject(new Error("not now")),
    });
    await waitFor(async () => expect(await rows()).toHaveLength(1));
    await failing.stop();
    const ahead = "+ interval '440 days'";
    await query(`update feed_deliveries set last_failed_at = last_failed_at ${ahead}, retry_at = retry_at ${ahead}`);
    const { ids } = start();
    await waitFor(() => expect(ids()).toEqual([1]));
  });

  test("waits alone, and is tried again with the same key, until it succeeds", async () => {
    const broken = { is: true };
    const { ids, handed } = start({
      handle: async ({ change }) => {
        if (change.reference === "POISON" && broken.is) throw Object.assign(new Error("secret"), { code: "http-500" });
      },
    });
    await feed.save("POISON");
    for (const number of numbers(1, 5)) await feed.save(`T-${number}`);
    await waitFor(async () => expect(await place()).toBe(6));
    await waitFor(() => expect(ids().filter((id) => id === 1).length).toBeGreaterThan(2));
    const [row] = await rows();
    expect(row).toMatchObject({ change_id: 1, failure: "http-500", died_at: null, since_id: null });
    const failingSince = () => query("select failing_since from feed_readers");
    await waitFor(async () => expect(await failingSince()).toEqual([{ failing_since: expect.any(Date) }]));
    broken.is = false;
    await waitFor(async () => expect(await rows()).toEqual([]));
    const attempts = handed.filter(({ change }) => change.id === 1);
    expect(attempts.map(({ attempt }) => attempt)).toEqual(numbers(1, attempts.length));
    expect(new Set(attempts.map(({ key }) => key))).toEqual(new Set(["test-1"]));
    expect(await failingSince()).toEqual([{ failing_since: null }]);
  });

  test("is handed over as it is now, if only the latest counts, under the newer change's key, and its attempts count anew", async () => {
    const broken = { is: true };
    const { handed } = start({
      retry: { firstPauseMs: neverMs },
      handle: async ({ change }) => {
        if (broken.is && change.id < 3) throw new Error("no");
      },
    });
    await feed.save("T", { note: "a" });
    await waitFor(async () => expect(await rows()).toMatchObject([{ change_id: 1, attempts: 1 }]));
    await feed.save("T", { note: "b" });
    await waitFor(async () => expect(await rows()).toMatchObject([{ change_id: 2, since_id: 1, attempts: 1 }]));
    await feed.save("T", { note: "c" });
    await waitFor(async () => expect(await rows()).toEqual([]));
    expect(handed.map(({ key, attempt }) => [key, attempt])).toEqual([1, 2, 3].map((id) => [`test-${id}`, 1]));
    expect(handed.at(-1)).toMatchObject({ standsForEarlier: true, changedFields: null });
  });

  test("keeps its later changes waiting in their order, if every one counts", async () => {
    const broken = { is: true };
    const { ids, handed } = start({
      mode: "every",
      handle: async ({ change }) => {
        if (change.reference === "POISON" && broken.is) throw new Error("no");
      },
    });
    for (const note of ["a", "b", "c"]) await feed.save("POISON", { note });
    for (const number of numbers(1, 3)) await feed.save(`T-${number}`);
    await waitFor(async () => expect(await place()).toBe(6));
    expect(inOrder(ids().filter((id) => id > 3))).toEqual([4, 5, 6]);
    expect(new Set(ids().filter((id) => id <= 3))).toEqual(new Set([1]));
    broken.is = false;
    await feed.save("POISON", { note: "d" });
    await waitFor(async () => expect([await rows(), await place()]).toEqual([[], 7]));
    expect(ids().filter((id) => [2, 3, 7].includes(id))).toEqual([2, 3, 7]);
    expect(handed.find(({ change }) => change.id === 3)).toMatchObject({ changedFields: ["note"], attempt: 1 });
  });

  test("becomes a dead letter when its attempts are used up, and revives with a newer change", async () => {
    const broken = { is: true };
    const retry = { firstPauseMs: 5, longestPauseMs: 5, giveUpAfterMs: 10 };
    const handle = async () => {
      if (broken.is) throw new Error("no");
    };
    const { ids, events } = start({ retry, handle });
    await feed.save("T");
    await waitFor(async () =>
      expect(await rows()).toMatchObject([{ died_at: expect.any(Date), retry_at: null, attempts: 3 }]),
    );
    expect(events.filter(({ type }) => type === "died")).toEqual([
      { type: "died", name: "test", bookingId: feed.idOf("T"), changeId: 1, failure: "Error" },
    ]);
    broken.is = false;
    await feed.save("T");
    await waitFor(async () => expect(await rows()).toEqual([]));
    expect(ids()).toEqual([1, 1, 1, 2]);
  });

  test("stays dead, and its later changes wait, if every one counts, until an operator replays it", async () => {
    const broken = { is: true };
    const handle = async () => {
      if (broken.is) throw new Error("no");
    };
    const { ids } = start({ mode: "every", retry: { giveUpAfterMs: 1 }, handle });
    await feed.save("T");
    await waitFor(async () => expect(await rows()).toMatchObject([{ died_at: expect.any(Date) }]));
    broken.is = false;
    await feed.save("T");
    await waitFor(async () => expect(await place()).toBe(2));
    const before = ids().length;
    await query("update feed_deliveries set died_at = null, retry_at = now(), attempts = 0");
    await waitFor(async () => expect(await rows()).toEqual([]));
    expect(ids().slice(before)).toEqual([1, 2]);
  });

  test("is handed over as it is now if the feed has lost the change, if every one counts, too", async () => {
    const broken = { is: true };
    const { handed } = start({
      mode: "every",
      handle: async () => {
        if (broken.is) throw new Error("no");
      },
    });
    await feed.save("T", { note: "a" });
    await feed.save("T", { note: "b" });
    await waitFor(async () => expect(await place()).toBe(2));
    await query(
      "update feed_position set kept_from = 3; delete from booking_changes; update booking_events set payload = null",
    );
    broken.is = false;
    await waitFor(async () => expect(await rows()).toEqual([]));
    expect(handed.at(-1)).toMatchObject({
      ...{ changedFields: null, standsForEarlier: true, key: `test-${feed.idOf("T")}-2` },
      change: { payloadState: "current", payload: { note: "b" }, revision: 2 },
    });
  });

  test("and takes too long has its signal aborted, and is tried again", async () => {
    const { ids, events } = start({
      timeoutMs: 30,
      handle: async ({ attempt }, { signal }) => {
        if (attempt === 1) await new Promise((resolve) => signal.addEventListener("abort", resolve));
      },
    });
    await feed.save("T");
    await waitFor(() => expect(ids()).toEqual([1, 1]));
    expect(events).toContainEqual(expect.objectContaining({ type: "attempt", outcome: "timeout", failure: "timeout" }));
  });
});

describe("a consumer that is behind", () => {
  test("is handed the newest state of each booking once, if only that counts", async () => {
    for (const note of numbers(1, 5)) {
      await feed.save("A", { note }, { ageMs: 60_000 });
      await feed.save("B", { note }, { ageMs: 60_000 });
    }
    const { handed } = start();
    await waitFor(async () => expect(await place()).toBe(10));
    expect(handed.map(({ change }) => [change.reference, change.payload?.["note"]])).toEqual([
      ["A", 5],
      ["B", 5],
    ]);
    expect(handed).toMatchObject([{ standsForEarlier: true, changedFields: null }, { standsForEarlier: true }]);
    await feed.save("A", { note: 6 });
    await waitFor(() => expect(handed[2]).toMatchObject({ standsForEarlier: false, changedFields: ["note"] }));
  });

  test("is handed each change, if every one counts", async () => {
    for (const note of numbers(1, 5)) await feed.save("A", { note }, { ageMs: 60_000 });
    const { ids, handed } = start({ mode: "every" });
    await waitFor(async () => expect(await place()).toBe(5));
    expect(ids()).toEqual([1, 2, 3, 4, 5]);
    expect(handed.every(({ standsForEarlier }) => !standsForEarlier)).toBe(true);
  });

  test("skips what a newer change has overridden while the booking's handler was busy", async () => {
    const blocked = gate();
    const { ids } = start({ handle: async ({ change }) => change.id === 1 && blocked.passed });
    await feed.save("T");
    await waitFor(() => expect(ids()).toEqual([1]));
    for (const _ of numbers(1, 3)) await feed.save("T", {}, { ageMs: 60_000 });
    await feed.save("OTHER");
    await waitFor(() => expect(ids()).toEqual([1, 5]));
    blocked.open();
    await waitFor(async () => expect(await place()).toBe(5));
    expect(ids()).toEqual([1, 5, 4]);
  });

  test("reads far more changes than it keeps in memory", async () => {
    await feed.save("FIRST");
    await pool.query(
      `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence)
       select number, gen_random_uuid(), 'acme', 'trip', 'T-' || number, 1, 'created', gen_random_uuid(), 1
       from generate_series(2, 12000) as number`,
    );
    await query("update feed_position set last_id = 12000");
    const { ids } = start({ mode: "every", concurrency: 64 });
    await waitFor(async () => expect(await place()).toBe(12_000), { timeoutMs: 30_000 });
    expect(new Set(ids()).size).toBe(12_000);
    expect(ids()).toHaveLength(12_000);
  }, 60_000);
});

describe("what a handler writes in its transaction", () => {
  const write = (id: number, { client }: DeliveryContext) =>
    client.query("insert into effects (change_id) values ($1)", [id]);

  test("is committed together with the delivery", async () => {
    for (const number of numbers(1, 10)) await feed.save(`T-${number}`);
    start({ handle: ({ change }, context) => write(change.id, context) });
    await waitFor(async () => expect(await place()).toBe(10));
    expect(inOrder((await query("select change_id from effects")).map((row) => Number(row["change_id"])))).toEqual(
      numbers(1, 10),
    );
    await waitFor(async () => expect(await rows()).toEqual([]));
  });

  test("is rolled back if it fails, even if the handler caught PostgreSQL's error", async () => {
    await feed.save("A");
    await feed.save("B");
    const { ids } = start({
      handle: async ({ change, attempt }, context) => {
        await write(change.id, context);
        if (attempt > 1) return;
        if (change.reference === "A") throw new Error("no");
        await context.client.query("select 1 / 0").catch(() => {});
      },
    });
    await waitFor(() => expect(inOrder(ids())).toEqual([1, 1, 2, 2]));
    await waitFor(async () =>
      expect(await query("select change_id from effects order by 1")).toEqual([{ change_id: 1 }, { change_id: 2 }]),
    );
  });

  test("counts once, though its connection breaks at any time", async () => {
    for (const number of numbers(1, 40)) await feed.save(`T-${number}`);
    start({ concurrency: 4, handle: ({ change }, context) => write(change.id, context) });
    const end = performance.now() + 1_500;
    while (performance.now() < end) {
      await query(`select pg_terminate_backend(pid) from pg_stat_activity
        where application_name = 'booking-events-deliver-handlers' and random() < 0.3`);
      await sleep(20);
    }
    await waitFor(async () => expect(await place()).toBe(40), { timeoutMs: 30_000 });
    const found = (await query("select change_id from effects")).map((row) => Number(row["change_id"]));
    expect(inOrder(found)).toEqual(numbers(1, 40));
    await waitFor(async () => expect(await rows()).toEqual([]));
  }, 60_000);
});

describe("a handler can ask", () => {
  test("to be left alone for a time, which costs no attempt", async () => {
    const asked = { at: 0 };
    const { handed } = start({
      handle: async () => {
        if (asked.at > 0) return;
        asked.at = performance.now();
        throw new RetryAfter(300);
      },
    });
    await feed.save("A");
    await waitFor(() => expect(asked.at).toBeGreaterThan(0));
    await feed.save("B");
    await waitFor(async () => expect(await place()).toBe(2));
    expect(performance.now() - asked.at).toBeGreaterThan(300);
    expect(handed.map(({ change, attempt }) => [change.reference, attempt])).toEqual([
      ["A", 1],
      ["A", 1],
      ["B", 1],
    ]);
    expect(await rows()).toEqual([]);
  });

  test("for a pause of an hour at most", () => {
    expect(new RetryAfter(1e12).pauseMs).toBe(3_600_000);
  });

  test("to stop, and what it was handed counts as not done", async () => {
    const { ended } = start({ handle: () => Promise.reject(new StopDelivering("410")) });
    await feed.save("A");
    await expect(ended).rejects.toThrow(StopDelivering);
    await expect(ended).rejects.toMatchObject({ reason: "410" });
    expect(await place()).toBe(0);
    const second = start();
    await waitFor(() => expect(second.ids()).toEqual([1]));
  });
});

describe("delivering ends", () => {
  test("with an error when changes were removed that the consumer had not got", async () => {
    await feed.save("A");
    await start().stop();
    await query("insert into feed_readers (name, last_id) values ('behind', 0)");
    await feed.save("B");
    await query("delete from booking_changes where id = 1; update feed_position set kept_from = 2");
    const { ended } = start({ name: "behind" });
    await expect(ended).rejects.toThrow(FeedGapError);
  });

  test("with an error when changes are missing, and those before them are done", async () => {
    for (const reference of ["A", "B", "C"]) await feed.save(reference);
    await query("delete from booking_changes where id = 2");
    await expect(start().ended).rejects.toThrow(FeedGapError);
  });

  test("with an error when the name belongs to another role", async () => {
    await query("insert into feed_readers (name, owner, last_id) values ('test', 'somebody', 0)");
    await expect(start().ended).rejects.toThrow(ForeignReaderError);
  });

  test("after the handlers that are under way, whose work counts", async () => {
    const blocked = gate();
    const { ids, stop } = start({ handle: () => blocked.passed });
    await feed.save("A");
    await waitFor(() => expect(ids()).toEqual([1]));
    const stopping = stop();
    await feed.save("B");
    blocked.open();
    await stopping;
    expect(ids()).toEqual([1]);
    expect(await place()).toBe(1);
    expect(await query("select active_id from feed_readers")).toEqual([{ active_id: null }]);
  });

  test.each([
    { name: "a'b" },
    { concurrency: 0 },
    { timeoutMs: 0 },
    { from: { after: -1 } },
    { filter: { partners: [] } },
    { filter: { countries: ["Spain"] } },
    { filter: { arrival: { fromDays: 2, toDays: 1 } } },
  ])("at once when options are wrong: %j", async (options) => {
    await expect(start(options as object).ended).rejects.toThrow(TypeError);
  });
});

describe("an erasure", () => {
  test("overtakes what waits of its booking, and is handed over once", async () => {
    const blocked = gate();
    const { handed, ids } = start({
      mode: "every",
      concurrency: 1,
      handle: async ({ change }) => change.id === 1 && blocked.passed,
    });
    await feed.save("BUSY");
    await waitFor(() => expect(ids()).toEqual([1]));
    for (const note of ["a", "b"]) await feed.save("GUEST", { note });
    await feed.save("OTHER");
    await feed.erase("GUEST");
    blocked.open();
    await waitFor(async () => expect(await place()).toBe(5));
    expect(inOrder(ids())).toEqual([1, 4, 5]);
    const erasure = { change: "erased", bookingId: feed.idOf("GUEST"), reference: null, payload: null };
    expect(handed.find(({ change }) => change.id === 5)).toMatchObject({
      ...{ key: "test-5", change: erasure, changedFields: null },
    });
    await waitFor(async () => expect(await rows()).toEqual([]));
  });

  test.each(["latest", "every"] as const)(
    "of a booking whose handler failed is handed over at once (%s)",
    async (mode) => {
      const { handed } = start({
        mode,
        retry: { firstPauseMs: neverMs },
        handle: async ({ change }) => {
          if (change.change !== "erased") throw new Error("no");
        },
      });
      for (const note of ["a", "b"]) await feed.save("GUEST", { note });
      await waitFor(async () => expect(await place()).toBe(2));
      await feed.erase("GUEST");
      await waitFor(() => expect(handed.at(-1)?.change).toMatchObject({ id: 3, change: "erased" }));
      await waitFor(async () => expect([await rows(), await place()]).toEqual([[], 3]));
    },
  );

  test("is handed over, and not the content before it that was on its way for too long", async () => {
    await feed.save("A", { note: "the guest" });
    const proxy = await startCuttableProxy(url);
    const held = proxy.holdAnswer("the guest");
    const { handed } = start({ database: proxy.url });
    const goOn = await held;
    await feed.erase("A");
    await sleep(freshMs);
    goOn();
    await waitFor(async () => expect(await place()).toBe(2));
    expect(handed).toMatchObject([{ change: { id: 2, change: "erased", payload: null }, attempt: 1 }]);
    proxy.cut();
  });

  test("of a dead letter is handed over", async () => {
    const { handed } = start({
      mode: "every",
      retry: { giveUpAfterMs: 0 },
      handle: async ({ change }) => {
        if (change.change !== "erased") throw new Error("no");
      },
    });
    await feed.save("GUEST");
    await waitFor(async () => expect(await rows()).toMatchObject([{ died_at: expect.any(Date) }]));
    await feed.erase("GUEST");
    await waitFor(() => expect(handed.at(-1)?.change.change).toBe("erased"));
    await waitFor(async () => expect(await rows()).toEqual([]));
  });
});

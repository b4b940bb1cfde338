import { type ChildProcess, spawn } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { compileCache, fromSource } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import { appendChanges, type ChangeToInsert, inTransaction, maintain, RollBack } from "@booking-events/store";
import pg from "pg";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { FeedGapError, ForeignReaderError } from "./errors.ts";
import { type FollowOptions, follow } from "./follow.ts";
import { type HandlingContext, maxHandlingMs } from "./handle-changes.ts";
import { type BookingChange, readChanges } from "./read-changes.ts";
import { tablesIn } from "./tables.ts";
import { startCuttableProxy } from "./testing/cuttable-proxy.ts";

const clocksAgree = { findClockProblem: async () => null };

const { pool, url } = useTestDatabase({ maxConnections: 8 });
/** Much longer than a test takes, so a follower with this interval does not poll. */
const neverMs = 1_000_000;

let number = 0;
const idOf = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;

function aChange(more: Partial<ChangeToInsert> = {}): ChangeToInsert {
  number += 1;
  return {
    ...{ partner: "acme", referenceKind: "trip", reference: `TRIP-${number}`, revision: 1, change: "created" },
    ...{ bookingId: idOf(number), eventId: idOf(number), sequence: number, previousEventId: null },
    ...more,
  };
}

function append(count = 1): Promise<void> {
  return inTransaction(pool, (client) =>
    appendChanges(
      client,
      Array.from({ length: count }, () => aChange()),
    ),
  );
}

/** They end with the test that has started them. */
const running: { controller: AbortController; ended: Promise<unknown> }[] = [];

function start(options: Partial<FollowOptions> = {}) {
  const controller = new AbortController();
  const handled: number[] = [];
  const logged: string[] = [];
  const log = (details: object, message: string) => logged.push(`${message} ${JSON.stringify(details)}`);
  const ended = follow({
    ...{ name: "test", database: url, signal: controller.signal, logger: { info: log, warn: log } },
    onChange: async ({ id }) => {
      handled.push(id);
    },
    ...options,
  });
  ended.catch(() => {});
  running.push({ controller, ended });
  const stop = () => {
    controller.abort();
    return ended;
  };
  return { handled, logged, stop, ended };
}

const ids = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

async function cursor(name = "test"): Promise<number | undefined> {
  const { rows } = await pool.query("select last_id from feed_readers where name = $1", [name]);
  return rows[0]?.last_id;
}

beforeEach(async () => {
  number = 0;
  await pool.query(
    "truncate booking_changes, booking_events, bookings, feed_readers cascade; drop table if exists handled",
  );
  await pool.query("update feed_position set last_id = 0, kept_from = 1");
  await pool.query(
    "create table handled (change_id bigint, process bigint, place bigint generated always as identity)",
  );
});

afterEach(async () => {
  for (const { controller } of running) controller.abort();
  await Promise.allSettled(running.splice(0).map(({ ended }) => ended));
});

describe("a new cursor", () => {
  test("begins at the oldest change by default, and goes on from where it is", async () => {
    await append(150);
    const first = start();
    await waitFor(() => expect(first.handled).toEqual(ids(1, 150)));
    await first.stop();
    await append(2);
    const second = start({ from: "now" });
    await waitFor(() => expect(second.handled).toEqual([151, 152]));
  });

  test("begins at the oldest change that is kept", async () => {
    await append(5);
    await pool.query("delete from booking_changes where id <= 3");
    const { handled } = start();
    await waitFor(() => expect(handled).toEqual([4, 5]));
  });

  test("can begin at the present end", async () => {
    await append(3);
    const { handled } = start({ from: "now" });
    await waitFor(async () => expect(await cursor()).toBe(3));
    await append();
    await waitFor(() => expect(handled).toEqual([4]));
  });
});

test("a change comes with what the booking holds and held, and names both events", async () => {
  const log = (n: number, kind: string, payload: object) =>
    pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at, default_country)
       values ($1, 'acme', $2, 'trip', 'T', '\\x00', $3, $4, '\\x00', 'updated', now(), 'GB')`,
      [idOf(n), kind, n, payload],
    );
  await log(1, "create", { note: "A" });
  await log(2, "update", { note: "B" });
  await log(3, "delete", { note: "none" });
  await log(4, "create", { note: "C" });
  const reference = { partner: "acme", referenceKind: "trip", reference: "T" } as const;
  const bookingId = randomUUID();
  const kinds = ["created", "updated", "deleted", "recreated", "erased"] as const;
  await inTransaction(pool, (client) =>
    appendChanges(
      client,
      kinds.map((change, index) =>
        aChange({
          ...(change === "erased" ? { ...reference, reference: null } : reference),
          ...{ bookingId, change, revision: index + 1, previousEventId: index === 0 ? null : idOf(index) },
        }),
      ),
    ),
  );
  const changes: BookingChange[] = [];
  start({ onChange: async (change) => void changes.push(change) });
  await waitFor(() => expect(changes).toHaveLength(5));
  const at = { changedAt: expect.any(Date) };
  const [none, A, B, C] = [null, { note: "A" }, { note: "B" }, { note: "C" }];
  const expected = [
    ["created", A, "as-changed", none, "none", null],
    ["updated", B, "as-changed", A, "as-changed", idOf(1)],
    ["deleted", none, "deleted", B, "as-changed", idOf(2)],
    ["recreated", C, "as-changed", none, "none", idOf(3)],
    ["erased", none, "erased", none, "erased", idOf(4)],
  ] as const;
  expect(changes).toEqual(
    expected.map(([change, payload, payloadState, previousPayload, previousPayloadState, previousEventId], index) => ({
      ...{ ...reference, ...at, id: index + 1, revision: index + 1, sequence: index + 1, eventId: idOf(index + 1) },
      ...{ bookingId, change, payload, payloadState, previousPayload, previousPayloadState, previousEventId },
      ...(change === "erased" ? { reference: null } : {}),
      defaultCountry: payload === null ? null : "GB",
    })),
  );
});

test("a change of any client has the payload's own names, whatever was parsed before", async () => {
  await pool.query(
    `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
       content_digest, outcome, received_at)
     values ($1, 'acme', 'create', 'trip', 'T', '\\x00', 1, $2, '\\x00', 'created', now())`,
    [idOf(1), { a: 0, "x\n": 0 }],
  );
  await append();
  JSON.parse('{"a":0,"x\\\\":0}');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const changes = await readChanges(client, tablesIn("public"), { name: "test", ids: [1] });
    expect(changes.map(({ payload }) => payload)).toEqual([{ a: 0, "x\n": 0 }]);
  } finally {
    await client.end();
  }
});

describe("a follower that waits", () => {
  test("is woken by a notification", async () => {
    const { handled } = start({ pollIntervalMs: neverMs });
    for (const n of [1, 2, 3]) {
      await append();
      await waitFor(() => expect(handled).toEqual(ids(1, n)));
    }
  });

  test("polls when it has nothing to listen to", async () => {
    const { handled } = start({ listenUrl: null, pollIntervalMs: 20 });
    await waitFor(async () => expect(await cursor()).toBe(0));
    await append();
    await waitFor(() => expect(handled).toEqual([1]));
  });

  test("polls while the connection that listens is cut, and listens again", async () => {
    const proxy = await startCuttableProxy(url);
    const { handled, logged } = start({ listenUrl: proxy.url, pollIntervalMs: 50 });
    await waitFor(async () => expect(await countListeners()).toBe(1));
    proxy.cut();
    await waitFor(() => expect(logged.join()).toContain("no notifications of changes: polling"));
    await append();
    await waitFor(() => expect(handled).toEqual([1]));
    await waitFor(async () => expect(await countListeners()).toBe(0));
    proxy.repair();
    await waitFor(async () => expect(await countListeners()).toBe(1));
    proxy.cut();
  });

  test("writes nothing: it does not lock its cursor", async () => {
    start({ pollIntervalMs: 5 });
    await append();
    await waitFor(async () => expect(await cursor()).toBe(1));
    // PostgreSQL keeps in the row which transaction has locked it last.
    const lastLock = async () => (await pool.query("select xmax::text from feed_readers")).rows;
    const before = await lastLock();
    const calls = await countCalls();
    await waitFor(async () => expect(await countCalls()).toBeGreaterThan(calls + 5));
    expect(await lastLock()).toEqual(before);
  });
});

/** Transactions of the database, whatever they do. */
async function countCalls(): Promise<number> {
  const { rows } = await pool.query(
    "select pg_stat_clear_snapshot(), (select xact_commit from pg_stat_database where datname = current_database()) as n",
  );
  return rows[0]?.n;
}

async function countListeners(): Promise<number> {
  const { rows } = await pool.query(
    "select from pg_stat_activity where datname = current_database() and application_name = 'test (listening)'",
  );
  return rows.length;
}

test("a change that can't be handled is tried again, and those before it in its page are committed", async () => {
  await append(5);
  const attempts: number[] = [];
  let isPoisoned = true;
  const { logged } = start({
    onChange: async ({ id }, { client }) => {
      await client.query("insert into handled (change_id) values ($1)", [id]);
      if (id !== 3 || !isPoisoned) return;
      attempts.push((await cursor()) ?? 0);
      if (attempts.length > 1) throw new Error("no");
      // PostgreSQL's error is caught, and the transaction fails all the same.
      await client.query("select 1 / 0").catch(() => {});
    },
  });
  await waitFor(() => expect(attempts.slice(0, 3)).toEqual([0, 2, 2]));
  expect(await readHandled()).toEqual([1, 2]);
  expect(await cursor()).toBe(2);
  isPoisoned = false;
  await waitFor(async () => expect(await readHandled()).toEqual(ids(1, 5)));
  expect(logged.slice(0, 2)).toEqual([
    'a change could not be handled: trying again {"name":"test","changeId":3,"attempt":1,"code":"25P02"}',
    'a change could not be handled: trying again {"name":"test","changeId":3,"attempt":2,"code":"Error"}',
  ]);
});

describe("a change whose handler loses the transaction", () => {
  type Client = HandlingContext["client"];

  async function processOf(client: Client): Promise<number> {
    const { rows } = await client.query("select pg_backend_pid() as pid");
    return rows[0]?.pid;
  }

  function isRunning(pid: number): boolean {
    try {
      return process.kill(pid, 0);
    } catch {
      return false;
    }
  }

  /** Of this transaction only, so that nothing else is too slow on a busy machine. */
  const shortenLimit = (client: Client) => client.query("set local idle_in_transaction_session_timeout to 50");
  const waitTooLong = async (client: Client) => {
    const pid = await processOf(client);
    await shortenLimit(client);
    await waitFor(() => !isRunning(pid));
  };
  const neverSettle = async (client: Client) => {
    await shortenLimit(client);
    await new Promise(() => {});
  };
  const blockTooLong = async (client: Client) => {
    const pid = await processOf(client);
    await shortenLimit(client);
    while (isRunning(pid));
  };

  test.each([
    ["waits too long", waitTooLong],
    ["never settles", neverSettle],
    ["blocks the process too long", blockTooLong],
    ["commits it", (client: Client) => client.query("commit")],
    ["rolls it back", (client: Client) => client.query("rollback")],
    ["begins another", (client: Client) => client.query("rollback; begin")],
  ])("is tried again if it %s, after those before it are committed", async (_, lose) => {
    await append(5);
    const places: (number | undefined)[] = [];
    const { logged, handled } = start({
      onChange: async ({ id }, { client }) => {
        if (id === 3) places.push(await cursor());
        if (id === 3 && places.length < 3) await lose(client);
        handled.push(id);
      },
    });
    await waitFor(async () => expect(await cursor()).toBe(5));
    expect(places).toEqual([0, 2, 2]);
    expect(handled.slice(-3)).toEqual([3, 4, 5]);
    expect(logged).toEqual(
      [1, 2].map(
        (attempt) =>
          `a change could not be handled: trying again {"name":"test","changeId":3,"attempt":${attempt},"code":"TransactionLost"}`,
      ),
    );
  });

  test("has not failed if the connection broke for another reason", async () => {
    await append(3);
    let breaks = 2;
    const { logged } = start({
      onChange: async ({ id }, { client }) => {
        await client.query("insert into handled (change_id) values ($1)", [id]);
        if (id !== 2 || breaks === 0) return;
        breaks -= 1;
        const pid = await processOf(client);
        await pool.query("select pg_terminate_backend($1)", [pid]);
        await waitFor(() => !isRunning(pid));
      },
    });
    await waitFor(async () => expect(await readHandled()).toEqual([1, 2, 3]));
    expect(logged).toEqual(Array(2).fill(expect.stringContaining("reconnecting to PostgreSQL")));
  });
});

async function readHandled(): Promise<number[]> {
  const { rows } = await pool.query<{ change_id: number }>("select change_id from handled order by place");
  return rows.map(({ change_id }) => change_id);
}

describe("a reader that was reset", () => {
  const reset = () => pool.query("update feed_readers set last_id = null");

  test("starts over from the beginning while the feed has all changes", async () => {
    await append(3);
    const { handled } = start({ pollIntervalMs: 20 });
    await waitFor(() => expect(handled).toEqual([1, 2, 3]));
    await reset();
    await waitFor(() => expect(handled).toEqual([1, 2, 3, 1, 2, 3]));
  });

  test("is refused at the beginning of a feed that has lost some: nothing would tell it what to delete", async () => {
    await append(5);
    await pool.query("delete from booking_changes where id <= 3; update feed_position set kept_from = 4");
    await pool.query("insert into feed_readers (name) values ('test')");
    const { ended, handled } = start();
    await expect(ended).rejects.toThrow(FeedGapError);
    await expect(ended).rejects.toThrow('from: "snapshot" is needed');
    expect(handled).toEqual([]);
  });

  test("starts at the present end if it began there", async () => {
    await append(3);
    await pool.query("update feed_position set kept_from = 2; insert into feed_readers (name) values ('test')");
    const { handled } = start({ from: "now" });
    await waitFor(async () => expect(await cursor()).toBe(3));
    await append();
    await waitFor(() => expect(handled).toEqual([4]));
  });
});

describe("a program", () => {
  test("is seen to run while it waits, though nothing happens", async () => {
    await pool.query("insert into feed_readers (name, last_id, seen_at) values ('test', 0, now() - interval '1 day')");
    const isSeen = async () => {
      const { rows } = await pool.query("select seen_at > now() - interval '1 hour' as seen from feed_readers");
      return rows[0]?.seen;
    };
    const { stop } = start({ pollIntervalMs: 20 });
    await waitFor(async () => expect(await isSeen()).toBe(true));
    await stop();
  });

  test("is refused the name of another role's reader", async () => {
    await pool.query("insert into feed_readers (name, last_id, owner) values ('test', 0, 'invoices')");
    const { ended } = start();
    await expect(ended).rejects.toThrow(ForeignReaderError);
    await expect(ended).rejects.toThrow("The reader test belongs to the role invoices");
    expect(await cursor()).toBe(0);
  });

  test.each(["", "two words", "x".repeat(101), "a'b"])("is refused the name %j", async (name) => {
    await expect(start({ name }).ended).rejects.toThrow(TypeError);
  });
});

describe("a feed in which changes are missing", () => {
  test.each([
    ["in the middle", "id = 4", [1, 2, 3], "after id 3: changes before 6 are missing."],
    ["at the end", "id >= 4", [1, 2, 3], "after id 3: the changes up to 6 are missing."],
  ])("is refused: %s", async (_, missing, seen, message) => {
    await append(3);
    const { handled, ended } = start();
    await waitFor(() => expect(handled).toEqual(seen));
    await inTransaction(pool, async (client) => {
      await appendChanges(client, [aChange(), aChange(), aChange()]);
      await client.query(`delete from booking_changes where ${missing}`);
    });
    await expect(ended).rejects.toThrow(FeedGapError);
    await expect(ended).rejects.toThrow(message);
    expect(handled).toEqual(seen);
    expect(await cursor()).toBe(3);
  });

  test("is refused when they were too old to be kept", async () => {
    await append(5);
    await pool.query("insert into feed_readers (name, last_id, seen_at) values ('test', 1, now() - interval '2 days')");
    await pool.query("update booking_changes set changed_at = now() - interval '2 years' where id in (1, 2, 4)");
    const rules = { retentionDays: 400, deletedRetentionDays: 0, deadLetterRetentionDays: 0 };
    expect((await maintain(pool, rules, clocksAgree)).removed.booking_changes).toBe(2);
    const { handled, ended } = start();
    await expect(ended).rejects.toThrow(
      "after id 1: the changes before 3 were removed: they were too old. Start over from a snapshot: ops feed reset test",
    );
    await pool.query("delete from feed_readers");
    const other = start();
    await waitFor(() => expect(other.handled).toEqual([3, 4, 5]));
    expect(handled).toEqual([]);
  });

  test("is refused when it ends before the cursor", async () => {
    await append(3);
    const { handled, ended } = start({ pollIntervalMs: 20 });
    await waitFor(async () => expect(await cursor()).toBe(3));
    await pool.query("delete from booking_changes where id = 3; update feed_position set last_id = 2");
    await expect(ended).rejects.toThrow("the feed ends at 2, before the reader's place.");
    expect(handled).toEqual([1, 2, 3]);
  });
});

test("the next change waits until the consumer has dealt with the last one", async () => {
  await append(200);
  let atOnce = 0;
  let most = 0;
  const { stop } = start({
    onChange: async () => {
      atOnce += 1;
      most = Math.max(most, atOnce);
      await sleep(0);
      atOnce -= 1;
    },
  });
  await waitFor(async () => expect(await cursor()).toBe(200));
  await stop();
  expect(most).toBe(1);
});

test("maintenance of the log gets its lock between slow handlers of a page", async () => {
  await append(2);
  const { promise: maintained, resolve: haveMaintained } = Promise.withResolvers<void>();
  const { handled } = start({
    onChange: async ({ id }) => {
      if (id === 1) {
        void pool.query("lock table booking_events in access exclusive mode").then(() => haveMaintained());
        await untilBlocked(pool, 1);
        await sleep(maxHandlingMs);
      } else {
        await maintained;
      }
      handled.push(id);
    },
  });
  await waitFor(() => expect(handled).toEqual([1, 2]));
});

describe("when the signal aborts", () => {
  test("the change that is being handled is the last one, and counts", async () => {
    await append(5);
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
    const handled: number[] = [];
    const { stop } = start({
      onChange: async ({ id }) => {
        handled.push(id);
        if (id === 2) {
          begun();
          await mayEnd;
        }
      },
    });
    await hasBegun;
    const stopped = stop();
    end();
    await stopped;
    expect(handled).toEqual([1, 2]);
    expect(await cursor()).toBe(2);
  });

  test("a handler that does not end is abandoned, and its transaction is rolled back", async () => {
    await append(2);
    const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
    const { stop } = start({
      onChange: async ({ id }, { client }) => {
        await client.query("insert into handled (change_id) values ($1)", [id]);
        begun();
        await new Promise(() => {});
      },
    });
    await hasBegun;
    await stop();
    // Nobody holds the cursor any more.
    const next = start();
    await waitFor(() => expect(next.handled).toEqual([1, 2]));
    expect(await readHandled()).toEqual([]);
  });

  test("it ends while it waits for changes, for PostgreSQL, and before it began", async () => {
    const waiting = start({ pollIntervalMs: neverMs });
    await waitFor(async () => expect(await cursor()).toBe(0));
    await waiting.stop();
    const nowhere = Object.assign(new URL(url), { port: "1" }).href;
    const unreachable = start({ database: nowhere });
    await waitFor(() => expect(unreachable.logged.length).toBeGreaterThan(1));
    await unreachable.stop();
    await start({ signal: AbortSignal.abort() }).ended;
  });
});

test("a follower whose connections break reconnects, and no change counts twice", async () => {
  const proxy = await startCuttableProxy(url);
  const { logged } = start({
    ...{ database: proxy.url, pollIntervalMs: 50 },
    onChange: async ({ id }, { client }) => {
      await client.query("insert into handled (change_id) values ($1)", [id]);
    },
  });
  for (const n of [1, 2, 3]) {
    await append();
    await waitFor(async () => expect(await readHandled()).toEqual(ids(1, n)));
    logged.length = 0;
    proxy.cut();
    await waitFor(() => expect(logged.join()).toContain("reconnecting to PostgreSQL"));
    proxy.repair();
  }
  proxy.cut();
});

describe("followers of one name", () => {
  const processes = new Set<ChildProcess>();
  let program: readonly string[];
  const maxKills = 12;
  /** Processes start slowly on a machine that is busy. */
  const slow = { timeoutMs: 60_000 };

  beforeAll(async () => {
    program = await bundleProgram(fromSource(`${import.meta.dirname}/testing/follow-and-count.ts`));
  });

  function spawnFollower(): ChildProcess {
    const child = spawn(process.execPath, [...program, url, "test"], {
      env: compileCache,
      stdio: ["ignore", "ignore", "inherit"],
    });
    processes.add(child);
    return child;
  }

  async function kill(child: ChildProcess): Promise<void> {
    processes.delete(child);
    child.kill("SIGKILL");
    await once(child, "exit");
  }

  afterEach(() => Promise.all([...processes].map(kill)));

  test("miss no change and repeat none, though they are killed at random moments", { timeout: 300_000 }, async () => {
    const followers = [spawnFollower(), spawnFollower()];
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) {
        await inTransaction(pool, async (client) => {
          await appendChanges(
            client,
            Array.from({ length: randomInt(1, 9) }, () => aChange()),
          );
          if (randomInt(5) === 0) throw new RollBack();
        }).catch((error: unknown) => {
          if (!(error instanceof RollBack)) throw error;
        });
        await sleep(randomInt(20));
      }
    })();
    try {
      for (let kills = 0; kills < maxKills; kills += 1) {
        const before = await cursor();
        await waitFor(async () => expect(await cursor()).toBeGreaterThan(before ?? -1), slow);
        await sleep(randomInt(40));
        await kill(followers[kills % 2] as ChildProcess);
        followers[kills % 2] = spawnFollower();
      }
    } finally {
      isWriting = false;
      await writing;
    }
    const { rows } = await pool.query("select last_id from feed_position");
    await waitFor(async () => expect(await cursor()).toBe(rows[0]?.last_id), slow);
    expect(await readHandled()).toEqual(ids(1, rows[0]?.last_id));
    const { rows: workers } = await pool.query("select count(distinct process)::int as n from handled");
    expect(workers[0]?.n).toBeGreaterThan(3);
  });

  test("take turns: one handles changes at a time, and another takes over when it dies", async () => {
    await append(2);
    const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
    const active = start({
      pollIntervalMs: 20,
      onChange: () => {
        begun();
        return new Promise(() => {});
      },
    });
    await hasBegun;
    const standby = start({ pollIntervalMs: 20 });
    const calls = await countCalls();
    await waitFor(async () => expect(await countCalls()).toBeGreaterThan(calls + 5));
    expect(standby.handled).toEqual([]);
    await active.stop();
    await waitFor(() => expect(standby.handled).toEqual([1, 2]));
  });

  test("take over from one that is frozen, whose work then does not count", async () => {
    await append(2);
    const { promise: thaw, resolve: thawed } = Promise.withResolvers<void>();
    const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
    const write = (id: number, client: HandlingContext["client"]) =>
      client.query("insert into handled (change_id) values ($1)", [id]);
    const frozen = start({
      onChange: async ({ id }, { client }) => {
        await client.query("set local idle_in_transaction_session_timeout to 200");
        await write(id, client);
        begun();
        await thaw;
      },
    });
    await hasBegun;
    start({ pollIntervalMs: 20, onChange: async ({ id }, { client }) => void (await write(id, client)) });
    await waitFor(async () => expect(await cursor()).toBe(2));
    thawed();
    await waitFor(() => expect(frozen.logged.join()).toContain("TransactionLost"));
    await append(1);
    await waitFor(async () => expect(await readHandled()).toEqual([1, 2, 3]));
  });
});

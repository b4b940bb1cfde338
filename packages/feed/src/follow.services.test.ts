import { type ChildProcess, spawn } from "node:child_process";
import { randomInt, randomUUID } from "node:crypto";
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { waitFor } from "@booking-events/harness";
import { compileCache, fromSource } from "@booking-events/harness/app-process";
import { bundleProgram } from "@booking-events/harness/bundle-program";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import { appendChanges, type ChangeToInsert, inTransaction, maintain, RollBack } from "@booking-events/store";
import pg from "pg";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  FeedGapError,
  ForeignReaderError,
  HandlerEndedTransaction,
  HandlerTimedOut,
  HandlingStopped,
} from "./errors.ts";
import { type FollowOptions, follow } from "./follow.ts";
import { type HandlingContext, maxHandlingMs } from "./handle-changes.ts";
import { type BookingChange, readChanges } from "./read-changes.ts";
import { tablesIn } from "./tables.ts";
import type { SnapshotBooking } from "./take-snapshot.ts";

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
    const changes = await readChanges(client, { after: 0, limit: 1, tables: tablesIn("public") });
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
    const proxy = await startProxy();
    const { handled, logged } = start({ listenUrl: proxy.url, pollIntervalMs: 50 });
    await waitFor(async () => expect(await countListeners()).toBe(1));
    proxy.cut();
    await waitFor(() => expect(logged.join()).toContain("no notifications of changes: polling"));
    await append();
    await waitFor(() => expect(handled).toEqual([1]));
    await waitFor(async () => expect(await countListeners()).toBe(0));
    proxy.repair();
    await waitFor(async () => expect(await countListeners()).toBe(1));
    await proxy.end();
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

/** A proxy in front of PostgreSQL that can cut all of its connections. */
async function startProxy() {
  const sockets = new Set<Socket>();
  const { hostname, port } = new URL(url);
  let isCut = false;
  const server = createServer((socket) => {
    if (isCut) return void socket.destroy();
    const onward = connectTcp(Number(port), hostname);
    for (const [from, to] of [
      [socket, onward],
      [onward, socket],
    ] as const) {
      sockets.add(from);
      from.on("error", () => {}).on("close", () => to.destroy());
      from.pipe(to);
    }
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("A TCP server has a port.");
  const cut = () => {
    isCut = true;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: Object.assign(new URL(url), { hostname: "127.0.0.1", port: String(address.port) }).href,
    cut,
    repair() {
      isCut = false;
    },
    async end() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}

describe("a change that can't be handled", () => {
  const poison = new Error("no");

  test("is retried, and those before it in its page are committed", async () => {
    await append(5);
    const attempts: number[] = [];
    let isPoisoned = true;
    start({
      onChange: async ({ id }, { client }) => {
        await client.query("insert into handled (change_id) values ($1)", [id]);
        if (id === 3 && isPoisoned) throw poison;
      },
      onError: async ({ error, change, attempt }) => {
        expect(error).toBe(poison);
        expect(change.id).toBe(3);
        attempts.push(attempt);
        return "retry";
      },
    });
    await waitFor(() => expect(attempts).toEqual([1, 2, 3]));
    expect(await readHandled()).toEqual([1, 2]);
    expect(await cursor()).toBe(2);
    isPoisoned = false;
    await waitFor(async () => expect(await readHandled()).toEqual(ids(1, 5)));
  });

  test("is skipped where the consumer says so, which may write it down, and is logged with its id", async () => {
    await append(5);
    const { logged } = start({
      onChange: async ({ id }, { client }) => {
        // PostgreSQL's error is caught, and the transaction fails all the same.
        if (id === 3) await client.query("select 1 / 0").catch(() => {});
        else await client.query("insert into handled (change_id) values ($1)", [id]);
      },
      onError: async ({ change }, { client }) => {
        await client.query("insert into handled (change_id, process) values ($1, 0)", [change.id]);
        return "skip";
      },
    });
    await waitFor(async () => expect(await cursor()).toBe(5));
    expect(await readHandled()).toEqual(ids(1, 5));
    expect((await pool.query("select change_id from handled where process = 0")).rows).toEqual([{ change_id: 3 }]);
    expect(logged).toEqual([expect.stringContaining('could not be handled: skip {"name":"test","changeId":3,')]);
  });

  test.each([
    ["says so", async () => "stop" as const, poison],
    ["fails itself", () => Promise.reject(new Error("worse")), new Error("worse")],
  ])("ends it where the consumer %s, after those before it", async (_, onError, cause) => {
    await append(5);
    const { handled, ended } = start({
      onChange: async ({ id }) => {
        if (id === 3) throw poison;
      },
      onError,
    });
    const error = await ended.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(HandlingStopped);
    expect(error).toMatchObject({ change: { id: 3 }, cause });
    expect(await cursor()).toBe(2);
    expect(handled).toEqual([]);
  });
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

  /** Not by `handlerTimeoutMs`, so that nothing else is too slow on a busy machine. */
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
    ["waits too long", waitTooLong, HandlerTimedOut],
    ["never settles", neverSettle, HandlerTimedOut],
    ["blocks the process too long", blockTooLong, HandlerTimedOut],
    ["commits it", (client: Client) => client.query("commit"), HandlerEndedTransaction],
    ["rolls it back", (client: Client) => client.query("rollback"), HandlerEndedTransaction],
    ["begins another", (client: Client) => client.query("rollback; begin"), HandlerEndedTransaction],
  ])("fails if it %s: those before it are committed, and the consumer decides", async (_, lose, expected) => {
    await append(5);
    const calls: number[] = [];
    const failures: unknown[] = [];
    const { logged } = start({
      onChange: async ({ id }, { client }) => {
        calls.push(id);
        if (id === 3 || id === 4) await lose(client);
      },
      onError: async ({ error, change, attempt }) => {
        failures.push({ error, id: change.id, attempt, cursor: await cursor() });
        return attempt < 2 ? "retry" : "skip";
      },
    });
    await waitFor(async () => expect(await cursor()).toBe(5));
    const error = expect.any(expected);
    expect(failures).toEqual([
      { error, id: 3, attempt: 1, cursor: 2 },
      { error, id: 3, attempt: 2, cursor: 2 },
      { error, id: 4, attempt: 1, cursor: 3 },
      { error, id: 4, attempt: 2, cursor: 3 },
    ]);
    expect(calls.filter((id) => id === 3 || id === 4)).toEqual([3, 3, 4, 4]);
    expect(logged[0]).toContain(`reconnecting to PostgreSQL after a failure {"name":"test","changeId":3,`);
    expect(logged[0]).toContain(expected.name);
  });

  test("is asked about again if the consumer loses the next transaction while it decides", async () => {
    await append(2);
    const attempts: number[] = [];
    const { handled } = start({
      onChange: async ({ id }, { client }) => {
        if (id === 1) await client.query("rollback");
        handled.push(id);
      },
      onError: async ({ attempt }, { client }) => {
        attempts.push(attempt);
        if (attempts.length < 3) await client.query("rollback");
        return "skip";
      },
    });
    await waitFor(async () => expect(await cursor()).toBe(2));
    expect(attempts).toEqual([1, 1, 1]);
    expect(handled).toEqual([1, 2]);
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
      onError: async () => "stop",
    });
    await waitFor(async () => expect(await readHandled()).toEqual([1, 2, 3]));
    expect(logged).toHaveLength(2);
  });
});

async function readHandled(): Promise<number[]> {
  const { rows } = await pool.query<{ change_id: number }>("select change_id from handled order by place");
  return rows.map(({ change_id }) => change_id);
}

describe("a reader that was reset", () => {
  const reset = () => pool.query("update feed_readers set last_id = null");

  test("starts over from a snapshot, though its program runs", async () => {
    await append(3);
    let snapshots = 0;
    const { handled } = start({
      from: "snapshot",
      pollIntervalMs: 20,
      deleteAll: async () => {
        snapshots += 1;
      },
      onSnapshot: async () => {},
    });
    await waitFor(async () => expect(await cursor()).toBe(3));
    await reset();
    await waitFor(async () => expect(await cursor()).toBe(3));
    await append();
    await waitFor(() => expect(handled).toEqual([4]));
    expect(snapshots).toBe(2);
  });

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
    ["in the middle", "id = 4", [1, 2, 3], "after id 3: the next change is 5."],
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

const deleteAll = async () => {};

describe("a snapshot", () => {
  async function book(client: Parameters<typeof appendChanges>[0], n: number, revision: number): Promise<void> {
    await client.query(
      `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision, payload,
         last_sequence, created_at, updated_at)
       values (sha256($1), 'acme', 'trip', $4, 'active', $2, 1, $3, '{}', 1, now(), now())
       on conflict (booking_key) do update set revision = excluded.revision`,
      [`TRIP-${n}`, idOf(n), revision, `TRIP-${n}`],
    );
    await appendChanges(client, [aChange({ reference: `TRIP-${n}`, revision })]);
  }

  test("and the changes after it give each booking's state, while others write", async () => {
    let isWriting = true;
    const revisions = new Map<string, number>();
    const write = (n: number) =>
      inTransaction(pool, async (client) => {
        const revision = (revisions.get(`TRIP-${n}`) ?? 0) + 1;
        await book(client, n, revision);
        revisions.set(`TRIP-${n}`, revision);
      });
    for (const n of ids(1, 450)) await write(n);
    const writing = (async () => {
      while (isWriting) await write(randomInt(1, 600));
    })();
    const known = new Map<string, number>();
    const pages: number[] = [];
    const positions = new Set<number>();
    const { stop } = start({
      from: "snapshot",
      deleteAll,
      onSnapshot: async (bookings, { position }) => {
        pages.push(bookings.length);
        positions.add(position);
        for (const { reference, revision } of bookings) known.set(reference, revision);
        const written = Math.max(...revisions.values());
        await waitFor(() => expect(Math.max(...revisions.values())).toBeGreaterThanOrEqual(written));
      },
      onChange: async ({ id, reference, revision }) => {
        expect(id).toBeGreaterThan([...positions][0] ?? 0);
        expect(revision).toBe((known.get(String(reference)) ?? 0) + 1);
        known.set(String(reference), revision);
      },
      onError: async () => "stop",
    });
    await waitFor(async () => expect(await cursor()).toBeGreaterThan(600)).finally(() => {
      isWriting = false;
    });
    await writing;
    const { rows } = await pool.query("select last_id from feed_position");
    await waitFor(async () => expect(await cursor()).toBe(rows[0]?.last_id));
    await stop();
    expect(known).toEqual(revisions);
    expect(pages.length).toBeGreaterThan(2);
    expect(positions.size).toBe(1);
  });

  test("has a deleted booking without its payload, and is committed with what the consumer writes", async () => {
    await inTransaction(pool, (client) => book(client, 1, 1));
    await inTransaction(pool, (client) => book(client, 2, 7));
    await pool.query(
      `update bookings set state = 'deleted', deleted_at = now(), payload = '{"old": 1}' where reference = 'TRIP-2'`,
    );
    const bookings: SnapshotBooking[] = [];
    start({
      from: "snapshot",
      deleteAll,
      onSnapshot: async (page, { client, position }) => {
        bookings.push(...page);
        await client.query("insert into handled (change_id) values ($1)", [position]);
      },
    });
    await waitFor(async () => expect(await readHandled()).toEqual([2]));
    expect(await cursor()).toBe(2);
    const common = { partner: "acme", referenceKind: "trip", sequence: 1 };
    const times = { createdAt: expect.any(Date), updatedAt: expect.any(Date) };
    expect(bookings).toEqual([
      {
        ...{
          ...common,
          ...times,
          bookingId: expect.any(String),
          reference: "TRIP-1",
          eventId: idOf(1),
          state: "active",
          revision: 1,
          payload: {},
        },
        deletedAt: null,
      },
      {
        ...{
          ...common,
          ...times,
          bookingId: expect.any(String),
          reference: "TRIP-2",
          eventId: idOf(2),
          state: "deleted",
          revision: 7,
          payload: null,
        },
        deletedAt: expect.any(Date),
      },
    ]);
  });

  test("that the consumer can't handle ends it and leaves no cursor", async () => {
    await inTransaction(pool, (client) => book(client, 1, 1));
    const failure = new Error("full");
    const { ended } = start({ from: "snapshot", deleteAll, onSnapshot: () => Promise.reject(failure) });
    await expect(ended).rejects.toBe(failure);
    expect(await cursor()).toBe(undefined);
  });

  test("begins with deleting all that the consumer keeps, and has no erased booking", async () => {
    await inTransaction(pool, (client) => book(client, 1, 1));
    await inTransaction(pool, (client) => book(client, 2, 1));
    await pool.query("update bookings set erased_at = now() where reference = 'TRIP-2'");
    await pool.query("insert into handled (change_id) values (99)");
    const options: Partial<FollowOptions> = {
      from: "snapshot",
      deleteAll: ({ client }) => client.query("delete from handled"),
      onSnapshot: async (page, { client }) => {
        await client.query("insert into handled (change_id) values ($1)", [page.length]);
      },
    };
    const first = start(options);
    await waitFor(async () => expect(await readHandled()).toEqual([1]));
    await first.stop();
    await pool.query("delete from feed_readers");
    const failure = new Error("full");
    const { ended } = start({ ...options, onSnapshot: () => Promise.reject(failure) });
    await expect(ended).rejects.toBe(failure);
    expect(await readHandled()).toEqual([1]);
  });

  test("needs handlers, so that no program forgets to delete what it keeps", async () => {
    const onSnapshot = async () => {};
    for (const given of [{}, { onSnapshot }, { deleteAll }])
      await expect(start({ from: "snapshot", ...given }).ended).rejects.toThrow(TypeError);
  });
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
  const proxy = await startProxy();
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
  await proxy.end();
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
      handlerTimeoutMs: 200,
      onChange: async ({ id }, { client }) => {
        await write(id, client);
        begun();
        await thaw;
      },
    });
    await hasBegun;
    start({ pollIntervalMs: 20, onChange: async ({ id }, { client }) => void (await write(id, client)) });
    await waitFor(async () => expect(await cursor()).toBe(2));
    thawed();
    await waitFor(() => expect(frozen.logged.join()).toContain("reconnecting"));
    await append(1);
    await waitFor(async () => expect(await readHandled()).toEqual([1, 2, 3]));
  });

  test("take one snapshot between them", async () => {
    await append(1);
    await pool.query(
      `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision, payload,
         last_sequence, created_at, updated_at)
       values ('k', 'acme', 'trip', 'T', 'active', $1, 1, 1, '{}', 1, now(), now())`,
      [idOf(1)],
    );
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    let snapshots = 0;
    const onSnapshot = async () => {
      snapshots += 1;
      await mayEnd;
    };
    const followers = [1, 2].map(() => start({ from: "snapshot", deleteAll, onSnapshot, pollIntervalMs: 20 }));
    await untilBlocked(pool, 1);
    end();
    await append(1);
    await waitFor(() => expect(followers.flatMap(({ handled }) => handled)).toEqual([2]));
    expect(snapshots).toBe(1);
  });
});

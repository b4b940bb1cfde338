import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { FeedOfBookings } from "@booking-events/feed/testing/feed-of-bookings";
import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { createLogger } from "@booking-events/runtime";
import {
  filterChanges,
  insertSubscription,
  pauseSubscription,
  rotateKeys,
  type SubscriptionToAdd,
} from "@booking-events/store";
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { watchSubscriptions } from "../subscriptions/watch-subscriptions.ts";
import { createPull, type Pull, type PullOptions } from "./create-pull.ts";

const { pool, url } = useTestDatabase({ maxConnections: 6 });
const feed = new FeedOfBookings(pool);

const logger = createLogger({ name: "test", level: "silent" });
const stopping = new AbortController();

let pull: Pull;
let server: Server;
let origin: string;
let token: string;
let isStopping: boolean;
let observed: Parameters<PullOptions["observe"]>[0][];

beforeAll(async () => {
  observed = [];
  isStopping = false;
  pull = createPull({
    database: pool,
    databaseUrl: url,
    schema: "public",
    logger,
    observe: (request) => observed.push(request),
    isStopping: () => isStopping,
  });
  const look = async () => pull.forgetTokens();
  void watchSubscriptions({ databaseUrl: url, schema: "public", look, logger, signal: stopping.signal });
  server = createServer(pull.answer);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  stopping.abort();
  server?.closeAllConnections();
  server?.close();
  await pull?.close();
});

beforeEach(async () => {
  await pool.query("truncate subscriptions");
  await feed.clear();
  token = await subscribe("warehouse");
});

async function subscribe(name: string, more: Partial<SubscriptionToAdd> = {}): Promise<string> {
  const made = randomBytes(32).toString("base64url");
  await insertSubscription(pool, {
    ...{ name, url: null, mode: null, payload: "thin", signature: null, signingKey: null, createdBy: "Ada" },
    ...{ partners: null, changes: null, countries: null, arrivalFromDays: null, arrivalToDays: null },
    ...{ tokenSha256: sha256(made), ...more },
  });
  return made;
}

const sha256 = (secret: string) => createHash("sha256").update(secret).digest();

function get(path: string, { as = token, signal }: { as?: string; signal?: AbortSignal } = {}): Promise<Response> {
  return fetch(`${origin}${path}`, { headers: { Authorization: `Bearer ${as}` }, signal: signal ?? null });
}

interface Item {
  id: number;
  type: string;
  source: string;
  subject: string;
  data: Record<string, unknown>;
}

async function read(path: string, as?: string): Promise<{ changes: Item[]; last: number }> {
  const response = await get(path, as === undefined ? {} : { as });
  expect(response.status).toBe(200);
  return (await response.json()) as { changes: Item[]; last: number };
}

async function ids(path: string, as?: string): Promise<{ ids: number[]; last: number }> {
  const { changes, last } = await read(path, as);
  return { ids: changes.map(({ id }) => id), last };
}

async function readPlaces(): Promise<unknown[]> {
  const { rows } = await pool.query(`select name, last_id::int as "lastId" from feed_readers order by name`);
  return rows;
}

async function untilNoted(name: string): Promise<void> {
  await waitFor(async () => expect(await readPlaces()).toContainEqual(expect.objectContaining({ name })));
}

describe("changes", () => {
  test("come in order and without gaps, and the answer says up to where it is complete", async () => {
    for (const reference of ["A", "B", "C"]) await feed.save(reference);
    const response = await get("/changes?after=0");
    expect(response.headers.get("cache-control")).toBe("no-store");
    const { changes, last } = (await response.json()) as { changes: Item[]; last: number };
    expect(changes).toMatchObject([
      { id: 1, specversion: "1.0", type: "booking.created", source: "acme", subject: "A", data: { revision: 1 } },
      { id: 2, subject: "B" },
      { id: 3, subject: "C", data: { bookingId: feed.idOf("C"), change: "created" } },
    ]);
    expect(last).toBe(3);
    expect(await ids("/changes?after=1&limit=1")).toEqual({ ids: [2], last: 2 });
    expect(await ids("/changes?after=3")).toEqual({ ids: [], last: 3 });
    expect(await ids("/changes")).toEqual({ ids: [1, 2, 3], last: 3 });
  });

  test("hold the booking only for who gets full ones, with all digits of its numbers", async () => {
    await feed.save("A", { consumerGivenName: "Ada" });
    await pool.query(`update booking_events set payload = payload || '{"price": 12345678901234567890.10}'`);
    expect((await read("/changes")).changes[0]?.data).not.toHaveProperty("sent");
    const full = await subscribe("full", { payload: "full" });
    const body = await (await get("/changes", { as: full })).text();
    expect(body).toContain('"price":12345678901234567890.10');
    expect(JSON.parse(body).changes).toMatchObject([
      { data: { sent: { consumerGivenName: "Ada" }, booking: { consumer_given_name: "Ada", state: "active" } } },
    ]);
  });

  test("of a guest who was erased say nothing but which booking it was, also earlier ones", async () => {
    await feed.save("A", { consumerGivenName: "Ada" });
    const bookingId = feed.idOf("A");
    await feed.erase("A");
    const { changes } = await read("/changes", await subscribe("full", { payload: "full" }));
    expect(changes).toMatchObject([
      { id: 1, type: "booking.created", subject: bookingId, data: { bookingId, revision: 1, change: "created" } },
      { id: 2, type: "booking.erased", subject: bookingId, data: { bookingId, revision: 2, change: "erased" } },
    ]);
    expect(Object.keys(changes[0]?.data ?? {})).toHaveLength(3);
    expect(JSON.stringify(changes)).not.toContain("Ada");
  });

  test("are read in several answers if they are long", async () => {
    const note = "x".repeat(60_000);
    for (let number = 1; number <= 70; number += 1) await feed.save(`T-${number}`, { note });
    const full = await subscribe("full", { payload: "full" });
    const seen: number[] = [];
    for (let after = 0; after < 70; ) {
      const { ids: some, last } = await ids(`/changes?after=${after}&limit=1000`, full);
      expect(last).toBe(some.at(-1));
      seen.push(...some);
      after = last;
    }
    expect(seen).toEqual(Array.from({ length: 70 }, (_, index) => index + 1));
  });

  test.each([
    ["after=-1", "after must be one whole number from 0 to"],
    ["after=a", "after"],
    ["after=1&after=2", "after"],
    ["limit=0", "limit must be one whole number from 1 to 1000"],
    ["limit=1001", "limit"],
    ["wait=31", "wait must be one whole number from 0 to 30"],
  ])("a wrong query is refused with what is right: %s", async (query, message) => {
    const response = await get(`/changes?${query}`);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({ code: "invalid-query", message: expect.stringContaining(message) });
  });

  test("that were removed, or that the feed does not have any more, are 410", async () => {
    for (const reference of ["A", "B", "C"]) await feed.save(reference);
    await pool.query("delete from booking_changes where id < 3; update feed_position set kept_from = 3");
    for (const after of [0, 1, 4]) {
      const response = await get(`/changes?after=${after}`);
      expect(response.status).toBe(410);
      expect(await response.json()).toEqual({ code: "gap", message: expect.stringContaining("/changes/snapshot") });
    }
    expect(await ids("/changes?after=2")).toEqual({ ids: [3], last: 3 });
  });
});

describe("a subscriber that waits", () => {
  test("is answered as soon as there is a change", async () => {
    const waiting = ids("/changes?after=0&wait=30");
    await untilNoted("warehouse");
    await feed.save("A");
    expect(await waiting).toEqual({ ids: [1], last: 1 });
  });

  test("is answered without changes when the time is over", async () => {
    expect(await ids("/changes?after=0&wait=1")).toEqual({ ids: [], last: 0 });
  });

  test("goes on to wait while a filter leaves out what comes, and need not read that again", async () => {
    const globe = await subscribe("globe", { partners: ["globe"] });
    const waiting = ids("/changes?after=0&wait=5", globe);
    await untilNoted("globe");
    await feed.save("A");
    expect(await waiting).toEqual({ ids: [], last: 1 });
  });

  test("is answered when the process stops", async () => {
    const waiting = get("/changes?after=0&wait=30");
    await untilNoted("warehouse");
    try {
      isStopping = true;
      expect(await (await waiting).json()).toEqual({ changes: [], last: 0 });
      expect((await get("/changes")).status).toBe(503);
    } finally {
      isStopping = false;
    }
  });

  test("whose token is revoked gets no more", async () => {
    const waiting = get("/changes?after=0&wait=30");
    await untilNoted("warehouse");
    await pool.query("delete from subscriptions");
    await feed.save("A");
    expect((await waiting).status).toBe(401);
  });

  test("and hangs up is forgotten, so that others can wait", async () => {
    const hungUp = Array.from({ length: 10 }, async () => {
      const controller = new AbortController();
      const waiting = get("/changes?after=0&wait=30", { signal: controller.signal });
      await sleep(200);
      controller.abort();
      await expect(waiting).rejects.toThrow();
    });
    await Promise.all(hungUp);
    await waitFor(async () => expect((await get("/changes?after=0")).status).toBe(200));
  });

  test("ten times at once is refused the eleventh", async () => {
    const controller = new AbortController();
    const waiting = Array.from({ length: 10 }, () =>
      get("/changes?after=0&wait=30", { signal: controller.signal }).catch(() => {}),
    );
    await waitFor(async () => {
      const response = await get("/changes?after=0");
      expect(response.status).toBe(429);
      expect(response.headers.get("retry-after")).toBe("1");
    });
    expect((await get("/changes", { as: await subscribe("another") })).status).toBe(200);
    controller.abort();
    await Promise.all(waiting);
  });
});

describe("a token", () => {
  test.each([
    ["none", {}],
    ["a wrong one", { Authorization: `Bearer ${"a".repeat(43)}` }],
    ["one of another form", { Authorization: "Bearer short" }],
    ["another scheme", { Authorization: "Basic YTpi" }],
  ])("%s is 401, with the same bytes", async (_, headers) => {
    const response = await fetch(`${origin}/changes`, { headers: headers as Record<string, string> });
    expect(response.status).toBe(401);
    expect(response.headers.get("www-authenticate")).toBe("Bearer");
    expect(await response.json()).toEqual({ code: "invalid-token", message: expect.stringMatching(/^Invalid token/) });
  });

  test("is valid as soon as the subscription is added, and until it is removed", async () => {
    for (let round = 0; round < 5; round += 1) {
      const name = `round-${round}`;
      const made = await subscribe(name);
      expect((await get("/changes", { as: made })).status).toBe(200);
      await pool.query("delete from subscriptions where name = $1", [name]);
      await waitFor(async () => expect((await get("/changes", { as: made })).status).toBe(401));
    }
  });

  test("before a rotation is valid until the stated time", async () => {
    const next = randomBytes(32).toString("base64url");
    await rotateKeys(pool, { name: "warehouse", signingKey: null, tokenSha256: sha256(next), keepHours: 1 });
    expect([(await get("/changes")).status, (await get("/changes", { as: next })).status]).toEqual([200, 200]);
    await pool.query("update subscriptions set previous_key_until = now()");
    await waitFor(async () => expect((await get("/changes")).status).toBe(401));
    expect((await get("/changes", { as: next })).status).toBe(200);
  });

  test("of a subscription that is paused is 403, and of one that is posted to does not exist", async () => {
    await pauseSubscription(pool, "warehouse", { reason: null, by: "Ada" });
    await waitFor(async () => expect((await get("/changes")).status).toBe(403));
  });

  test("of a subscription that is paused while its filter is changed is 503", async () => {
    await pauseSubscription(pool, "warehouse", { reason: filterChanges, by: "Ada" });
    // The clock of this host does not decide it.
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 3_600_000 });
    onTestFinished(() => void vi.useRealTimers());
    await waitFor(async () => expect((await get("/changes")).status).toBe(503));
    await pool.query("update subscriptions set paused_at = now() - interval '1 hour'");
    await waitFor(async () => expect((await get("/changes")).status).toBe(403));
  });

  test("that is unknown costs the database no query of its own", async () => {
    const count = async () =>
      (
        await pool.query(
          "select calls from (select xact_commit as calls from pg_stat_database where datname = current_database()) as stats",
        )
      ).rows[0].calls;
    await pool.query("select pg_stat_force_next_flush()");
    const before = await count();
    const strangers = Array.from({ length: 200 }, () => get("/changes", { as: randomBytes(32).toString("base64url") }));
    expect(new Set((await Promise.all(strangers)).map(({ status }) => status))).toEqual(new Set([401]));
    expect((await count()) - before).toBeLessThan(100);
  });
});

describe("a place", () => {
  test("is where the subscriber asks from, and never past the feed's end", async () => {
    for (const reference of ["A", "B", "C"]) await feed.save(reference);
    await read("/changes?after=1");
    await waitFor(async () => expect(await readPlaces()).toEqual([{ name: "warehouse", lastId: 1 }]));
    await read("/changes?after=3");
    await waitFor(async () => expect(await readPlaces()).toEqual([{ name: "warehouse", lastId: 3 }]));
    await get("/changes?after=1000");
    await read("/changes?after=2");
    await waitFor(async () => expect(await readPlaces()).toEqual([{ name: "warehouse", lastId: 2 }]));
  });

  test("of a subscription that was removed does not come back", async () => {
    const another = await subscribe("another");
    await read("/changes?after=0");
    await pool.query("delete from subscriptions where name = 'warehouse'; delete from feed_readers");
    // What was noted before is written with this.
    await read("/changes?after=0", another);
    await waitFor(async () => expect(await readPlaces()).toEqual([{ name: "another", lastId: 0 }]));
  });
});

describe("a filter", () => {
  const spain = { consumerTripDestinationCountryName: "Spain" };
  const france = { consumerTripDestinationCountryName: "France" };

  test("of partners leaves out others, and the answer is complete past them", async () => {
    await feed.save("A");
    await feed.save("B", {}, { partner: "globe" });
    await feed.save("C");
    const globe = await subscribe("globe", { partners: ["globe"] });
    expect(await ids("/changes?after=0", globe)).toEqual({ ids: [2], last: 3 });
    expect(await ids("/changes?after=2", globe)).toEqual({ ids: [], last: 3 });
  });

  test("of destinations reports a booking that leaves once, and when it is deleted, however often it is read", async () => {
    const es = await subscribe("es", { countries: ["ES"] });
    await feed.save("A", france);
    await feed.save("A", spain);
    await feed.save("A", { ...france, note: "leaves" });
    await feed.save("A", { ...france, note: "is outside" });
    await feed.delete("A");
    await feed.save("B", france);
    await feed.delete("B");
    for (let round = 0; round < 2; round += 1)
      expect(await ids("/changes?after=0", es)).toEqual({ ids: [2, 3, 5], last: 7 });
    expect(await ids("/changes?after=2", es)).toEqual({ ids: [3, 5], last: 7 });
  });

  test("tells of an erasure who ever had the booking, and nobody else", async () => {
    const es = await subscribe("es", { countries: ["ES"] });
    await feed.save("A", spain);
    await feed.save("B", france);
    expect(await ids("/changes?after=0", es)).toEqual({ ids: [1], last: 2 });
    await feed.erase("A");
    await feed.erase("B");
    expect(await ids("/changes?after=2", es)).toEqual({ ids: [3], last: 4 });
    expect((await read("/changes?after=2", es)).changes).toMatchObject([
      { type: "booking.erased", subject: feed.idOf("A") },
    ]);
  });

  test("of kinds leaves out others, but for deletions of what was reported", async () => {
    const created = await subscribe("created", { changes: ["created"] });
    await feed.save("A");
    await feed.save("A", { note: "b" });
    await feed.delete("A");
    expect(await ids("/changes?after=0", created)).toEqual({ ids: [1, 3], last: 3 });
  });

  test("of arrivals looks at the day of the change", async () => {
    const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    const soon = await subscribe("soon", { arrivalFromDays: 0, arrivalToDays: 7 });
    await feed.save("A", { consumerTripArrivalDate: day(3) });
    await feed.save("B", { consumerTripArrivalDate: day(30) });
    await feed.save("A", { consumerTripArrivalDate: day(31) });
    expect(await ids("/changes?after=0", soon)).toEqual({ ids: [1, 3], last: 3 });
  });

  test("of arrivals reports once that a booking leaves for another day, also when it had come too close", async () => {
    const day = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
    const soon = await subscribe("soon", { arrivalFromDays: 2, arrivalToDays: 14 });
    await feed.save("A", { consumerTripArrivalDate: day(1) }, { ageMs: 3 * 86_400_000 });
    await feed.save("A", { consumerTripArrivalDate: day(1), note: "is too close" });
    await feed.save("A", { consumerTripArrivalDate: day(21) });
    await feed.save("A", { consumerTripArrivalDate: day(21), note: "is too far" });
    await feed.save("A", { consumerTripArrivalDate: day(22) });
    for (let round = 0; round < 2; round += 1)
      expect(await ids("/changes?after=0", soon)).toEqual({ ids: [1, 3], last: 5 });
  });
});

describe("a snapshot", () => {
  async function readSnapshot(as = token): Promise<{ position: number; bookings: Item[] }> {
    const response = await get("/changes/snapshot", { as });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(response.headers.get("cache-control")).toBe("no-store");
    const [first, ...lines] = (await response.text())
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    return { ...first, bookings: lines };
  }

  test("has all bookings that are not deleted, at one position, as if they had just been created", async () => {
    for (let number = 1; number <= 450; number += 1) await feed.save(`T-${number}`);
    await feed.save("T-7", { note: "b" });
    await feed.delete("T-8");
    await feed.erase("T-9");
    const { position, bookings } = await readSnapshot();
    expect(position).toBe(453);
    expect(bookings).toHaveLength(448);
    const seventh = bookings.find(({ subject }) => subject === "T-7");
    expect(seventh).toMatchObject({ type: "booking.created", data: { bookingId: feed.idOf("T-7"), revision: 2 } });
    expect(seventh).not.toHaveProperty("id");
    expect(await ids(`/changes?after=${position}`)).toEqual({ ids: [], last: position });
  });

  test("passes the filter, and who got it is told of erasures", async () => {
    const es = await subscribe("es", { countries: ["ES"], payload: "full" });
    await feed.save("A", { consumerTripDestinationCountryName: "Spain" });
    await feed.save("B", { consumerTripDestinationCountryName: "France" });
    const { position, bookings } = await readSnapshot(es);
    expect(bookings).toMatchObject([
      { subject: "A", data: { booking: { consumer_trip_destination_country_code: "ES" } } },
    ]);
    await feed.erase("A");
    await feed.erase("B");
    expect(await ids(`/changes?after=${position}`, es)).toEqual({ ids: [3], last: 4 });
  });

  test("that cannot be finished does not look like a whole one", async () => {
    for (let number = 1; number <= 300; number += 1) await feed.save(`T-${number}`, { note: "x".repeat(60_000) });
    const full = await subscribe("full", { payload: "full" });
    const socket = connect(Number(new URL(origin).port), "127.0.0.1");
    socket.write(`GET /changes/snapshot HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${full}\r\n\r\n`);
    await once(socket, "readable");
    const isReading = "pid <> pg_backend_pid() and query like 'fetch%' and datname = current_database()";
    await waitFor(async () =>
      expect(
        (await pool.query(`select pg_terminate_backend(pid) from pg_stat_activity where ${isReading}`)).rowCount,
      ).toBe(1),
    );
    const received = await text(socket);
    expect(received).toMatch(/^HTTP\/1.1 200/);
    expect(received).not.toMatch(/\r\n0\r\n\r\n$/);
  });

  test("is given to a subscription once at a time", async () => {
    for (let number = 1; number <= 300; number += 1) await feed.save(`T-${number}`, { note: "x".repeat(60_000) });
    const full = await subscribe("full", { payload: "full" });
    const first = await get("/changes/snapshot", { as: full });
    expect((await get("/changes/snapshot", { as: full })).status).toBe(429);
    await first.text();
    await waitFor(async () => {
      const again = await get("/changes/snapshot", { as: full });
      // What nobody reads would hold its transaction for longer than this test.
      await again.text();
      expect(again.status).toBe(200);
    });
  });
});

describe("a connection", () => {
  const headers = () => ({ Authorization: `Bearer ${token}` });

  async function connectionOf(path: string, headers: Record<string, string>): Promise<string | undefined> {
    const [response] = (await once(request(`${origin}${path}`, { agent, headers }).end(), "response")) as [
      IncomingMessage,
    ];
    response.resume();
    return response.headers.connection;
  }

  const agent = new Agent({ keepAlive: true });
  afterAll(() => agent.destroy());

  test("is kept for who has a token, and nobody else", async () => {
    expect(await connectionOf("/changes", headers())).toBe("keep-alive");
    expect(await connectionOf("/changes", {})).toBe("close");
    expect(await connectionOf("/changes", { Authorization: `Bearer ${"a".repeat(43)}` })).toBe("close");
    expect(await connectionOf("/", {})).toBe("close");
  });

  test("on which a subscriber waited ends with its answer when the process stops", async () => {
    const waiting = connectionOf("/changes?after=0&wait=30", headers());
    await untilNoted("warehouse");
    try {
      isStopping = true;
      expect(await waiting).toBe("close");
    } finally {
      isStopping = false;
    }
  });

  test("whose answer is not read counts as under way", async () => {
    for (let number = 1; number <= 70; number += 1) await feed.save(`T-${number}`, { note: "x".repeat(60_000) });
    const full = await subscribe("full", { payload: "full" });
    const unread = Array.from({ length: 10 }, () => {
      const socket = connect(Number(new URL(origin).port), "127.0.0.1");
      socket.write(`GET /changes?limit=1000 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${full}\r\n\r\n`);
      return socket;
    });
    await Promise.all(unread.map((socket) => once(socket, "readable")));
    expect((await get("/changes?after=70", { as: full })).status).toBe(429);
    for (const socket of unread) socket.destroy();
    await waitFor(async () => expect((await get("/changes?after=70", { as: full })).status).toBe(200));
  });
});

test.each([
  ["GET", "/", 404, "no-such-path"],
  ["GET", "/changes/", 404, "no-such-path"],
  ["POST", "/changes", 405, "wrong-method"],
])("%s %s is %d", async (method, path, status, code) => {
  const response = await fetch(`${origin}${path}`, { method, headers: { Authorization: `Bearer ${token}` } });
  expect(response.status).toBe(status);
  expect(await response.json()).toMatchObject({ code });
  expect(observed.at(-1)).toEqual({
    path: path === "/changes" ? "changes" : "other",
    status,
    durationMs: expect.any(Number),
  });
});

test("while PostgreSQL fails, the answer is 503 with Retry-After", async () => {
  expect((await get("/changes")).status).toBe(200);
  await pool.query("alter table booking_changes rename to away");
  const response = await get("/changes");
  await pool.query("alter table away rename to booking_changes");
  expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await response.json()).toMatchObject({ code: "unavailable" });
  expect((await get("/changes")).status).toBe(200);
});

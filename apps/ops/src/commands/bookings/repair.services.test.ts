import { hash, randomUUID } from "node:crypto";
import { type FoldEvent, foldEvents, toCanonicalJson } from "@booking-events/bookings";
import { waitFor } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { untilBlocked, useTestDatabase } from "@booking-events/harness/test-database";
import type { EventKind } from "@booking-events/schema";
import {
  bookingKey,
  type DigestKey,
  type EventToInsert,
  insertBookings,
  insertEvents,
  openDigestKey,
  readLogged,
} from "@booking-events/store";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { runOps } from "../../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 3 });
const start = Date.UTC(2026, 10, 20) * 1_000;
const duplicateWindowMs = 72 * 3_600_000;

let digestKey: DigestKey;
let history: FoldEvent[];

beforeAll(async () => {
  digestKey = await openDigestKey(pool, undefined);
  history = [event(1, "create", "A"), event(2, "update", "B"), event(3, "update", "C")];
});

beforeEach(async () => {
  await pool.query("truncate bookings, booking_events, booking_changes");
  await pool.query("delete from log_retention; insert into log_retention default values");
});

const trip = { partner: "acme", referenceKind: "trip" as const, reference: "CANARY-1" };
const key = { ...trip, bookingKey: bookingKey("acme", "trip", "CANARY-1") };
const idOf = (number: number) => `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`;

const payloadOf = (content: string) => ({
  consumerTripPartnerExternalReference: "CANARY-1",
  consumerTripArrivalDate: `2027-01-${content.charCodeAt(0) - 50}`,
});

/** Events are numbered in the order of receipt, in hours. */
function event(number: number, kind: EventKind, content: string): FoldEvent {
  const sequence = start + number * 3_600_000_000;
  const contentDigest = digestKey.digestContent(hash("sha256", toCanonicalJson(payloadOf(content)), "hex"));
  contents.set(contentDigest, content);
  const receivedAt = new Date(sequence / 1_000);
  return { id: idOf(number), kind, sequence, hasIdempotencyKey: false, contentDigest, receivedAt };
}

/** By their digests. */
const contents = new Map<string, string>();

function toLog(events: FoldEvent[]): EventToInsert[] {
  return foldEvents(null, events, { earlierCreates: new Map(), duplicateWindowMs }).map(
    ({ event: { hasIdempotencyKey: _, ...logged }, outcome, after }) => ({
      ...key,
      ...logged,
      ...{
        idempotencyKey: null,
        payload: JSON.stringify(payloadOf(contents.get(logged.contentDigest) ?? "")),
        outcome,
        duplicateOf: null,
        warnings: [],
        after,
      },
    }),
  );
}

/** Stores a booking as a worker does. */
async function insert(...events: FoldEvent[]): Promise<void> {
  const log = toLog(events);
  await insertEvents(pool, log);
  const state = log.at(-1)?.after;
  if (!state) throw new Error("A booking has an event.");
  const booking = { ...key, bookingId: randomUUID(), state, revision: events.length, newContent: "logged" as const };
  await insertBookings(pool, await readLogged(pool, [booking]));
}

function ops(...args: string[]) {
  return runOps(["bookings", ...args], { environment: { DATABASE_URL: url } });
}

async function dump() {
  const [bookings, events, changes] = await Promise.all(
    ["bookings", "booking_events", "booking_changes"].map((table) => pool.query(`select * from ${table} order by 1`)),
  );
  return [bookings?.rows, events?.rows, changes?.rows];
}

async function readChanges() {
  const { rows } = await pool.query(
    "select change, revision, event_id, previous_event_id from booking_changes order by id",
  );
  return rows;
}

const isRight = { exitCode: 0, stderr: "", stdout: expect.stringContaining("0 bookings differ") };

test("a wrong booking gets the state of its log, and readers of the feed a change", async () => {
  await insert(...history);
  const [right] = await dump();
  await pool.query("update bookings set state = 'deleted', event_id = $1, deleted_at = now(), payload = '{}'", [
    idOf(2),
  ]);
  const before = await dump();

  const planned = await ops("repair", "acme", "CANARY-1");
  expect(planned).toMatchObject({ exitCode: 0, stderr: "" });
  expect(planned.stdout).toContain("Would be repaired: 0 events revised, change 4 in the feed: recreated.");
  expect(planned.stdout).toContain("1 bookings: 1 would be repaired. To repair them, add --yes.");
  expect(await dump()).toEqual(before);

  const repaired = await ops("repair", "acme", "CANARY-1", "--yes", "--json");
  expect(JSON.parse(repaired.stdout)).toEqual({
    ...{ bookings: 1, isDryRun: false, repaired: 1, refused: 0 },
    repairs: [
      {
        ...trip,
        bookingId: expect.any(String),
        differences: expect.arrayContaining([expect.stringMatching(/^The booking is deleted by event .*2, but/)]),
        ...{ change: "recreated", revision: 4, eventId: idOf(3), revised: 0, refused: null },
      },
    ],
  });
  expect(repaired.stderr).toBe("");
  const { rows } = await pool.query(
    "select arguments, outcome, did from operator_actions where command = 'bookings repair' order by began_at desc",
  );
  const { bookingId } = JSON.parse(repaired.stdout).repairs[0];
  expect(rows[0]).toEqual({
    ...{ arguments: { partner: "acme", all: false }, outcome: "done" },
    did: { bookings: 1, bookingIds: [bookingId] },
  });
  expect(await ops("verify")).toMatchObject(isRight);
  const [after] = await dump();
  expect(after).toEqual([{ ...right?.[0], revision: 4 }]);
  expect(await readChanges()).toEqual([
    { change: "recreated", revision: 4, event_id: idOf(3), previous_event_id: idOf(2) },
  ]);

  expect((await ops("repair", "--all", "--yes")).stdout).toBe("1 bookings: 0 were repaired.\n");
  expect(await readChanges()).toHaveLength(1);
});

test("a booking with another content than its event sent gets that back, and readers of the feed a change", async () => {
  await insert(...history);
  const [right] = await dump();
  await pool.query("update bookings set payload = $1, consumer_trip_arrival_date = '2026-01-01'", [
    JSON.stringify(payloadOf("X")),
  ]);
  const { exitCode, stdout } = await ops("verify");
  expect([exitCode, stdout]).toEqual([1, expect.stringContaining("The booking's content is not what its event sent.")]);

  expect((await ops("repair", "--all", "--yes")).stdout).toContain("0 events revised, change 4 in the feed: updated.");
  expect(await ops("verify")).toMatchObject(isRight);
  const [after] = await dump();
  expect(after).toEqual([{ ...right?.[0], revision: 4 }]);
  expect(await readChanges()).toEqual([
    { change: "updated", revision: 4, event_id: idOf(3), previous_event_id: idOf(3) },
  ]);
});

test("wrong outcomes and states in the log are corrected, and superseded events stay so", async () => {
  await insert(...history);
  await pool.query("update booking_events set outcome = 'superseded' where id = $1", [idOf(1)]);
  const [, right] = await dump();
  await pool.query("update booking_events set outcome = 'unchanged', state_after = 'deleted' where id = $1", [idOf(2)]);
  const { stdout } = await ops("repair", "acme", "--all", "--yes");
  expect(stdout).toContain("Repaired: 1 events revised, no change in the feed.");
  expect(await ops("verify")).toMatchObject(isRight);
  const [, after] = await dump();
  expect(after).toEqual(right);
});

test("a superseded event that decides the state after all gets its outcome", async () => {
  await insert(...history);
  await pool.query("update booking_events set outcome = 'superseded' where id = $1", [idOf(3)]);
  expect((await ops("repair", "acme", "CANARY-1", "--yes")).stdout).toContain("1 events revised");
  expect(await ops("verify")).toMatchObject(isRight);
});

test("a booking whose first events were removed is folded from where its log begins", async () => {
  await insert(
    event(1, "create", "A"),
    event(100, "update", "B"),
    event(200, "update", "C"),
    event(300, "delete", "D"),
  );
  const [right] = await dump();
  await pool.query("delete from booking_events where id = $1", [idOf(1)]);
  await pool.query("update log_retention set horizon = '2026-11-20T02:00Z'");
  await pool.query("update bookings set state = 'active', event_id = $1, deleted_at = null", [idOf(200)]);
  expect((await ops("repair", "acme", "CANARY-1", "--yes")).stdout).toContain("change 5 in the feed: deleted");
  expect((await ops("verify")).stdout).toContain("0 bookings differ");
  const [after] = await dump();
  expect(after).toEqual([{ ...right?.[0], revision: 5 }]);
});

test("bookings are judged by the window that the workers have recorded, and not by the command's", async () => {
  await insert(...history, event(4, "create", "A"));
  await pool.query(
    `update log_retention set retention_days = 400, deleted_retention_days = 30, dead_letter_retention_days = 90,
       duplicate_window_hours = 72`,
  );
  const environment = { DATABASE_URL: url, DUPLICATE_WINDOW_HOURS: "0" };
  expect(await runOps(["bookings", "verify"], { environment })).toMatchObject(isRight);
  const repaired = await runOps(["bookings", "repair", "--all", "--yes"], { environment });
  expect(repaired).toMatchObject({ exitCode: 0, stdout: "1 bookings: 0 were repaired.\n" });
});

test.each<[why: string, damage: string, message: RegExp]>([
  ["its log is gone", "delete from booking_events", /Its log has no event that counts\. Restore a backup\./],
  [
    "keys were misjudged",
    "update booking_events set idempotency_key = 'k', duplicate_of = null, warnings = '{}'",
    /Idempotency keys are recorded wrongly/,
  ],
  [
    "its content was changed in the log",
    `update booking_events set payload = '{"consumerTripPartnerExternalReference": "CANARY-1"}' where id = '${idOf(3)}'`,
    /Its content was changed in the log, too\./,
  ],
  [
    "its content is gone",
    "with damaged as (update bookings set state = 'deleted', payload = null) update booking_events set payload = null",
    /its content has been removed\. Have the partner send it again\./,
  ],
])("a booking is refused if %s, and nothing changes", async (_why, damage, message) => {
  await insert(...history);
  await pool.query(damage);
  const before = await dump();
  for (const args of [[], ["--yes"]]) {
    const ran = await ops("repair", "acme", "CANARY-1", ...args);
    expect(ran).toEqual({
      ...{ exitCode: 1, stderr: "Not every booking can be repaired from its log.\n" },
      stdout: expect.stringMatching(message),
    });
  }
  expect(await dump()).toEqual(before);
});

test("what a worker applies meanwhile is in the repaired state", async () => {
  await insert(...history);
  await pool.query("update bookings set state = 'deleted', deleted_at = now()");
  const worker = await pool.connect();
  try {
    await worker.query("begin");
    await worker.query("select from bookings for update");
    const repairing = ops("repair", "acme", "CANARY-1", "--yes");
    await untilBlocked(pool, 1);
    await insertEvents(worker, toLog([...history, event(4, "update", "D")]).slice(-1));
    await worker.query("commit");
    expect((await repairing).stdout).toContain("1 were repaired");
  } finally {
    worker.release();
  }
  expect(await ops("verify")).toMatchObject(isRight);
  const { rows } = await pool.query("select state, event_id, payload from bookings");
  expect(rows).toEqual([{ state: "active", event_id: idOf(4), payload: payloadOf("D") }]);
});

test("what to repair must be said", async () => {
  for (const args of [[], ["acme"], ["acme", "CANARY-1", "--all"]])
    expect(await ops("repair", ...args)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("or --all") });
  expect(await ops("repair", "acme", "CANARY-2")).toMatchObject({
    ...{ exitCode: 1, stderr: "Partner acme has no booking CANARY-2.\n" },
  });
  for (const more of [[], ["--yes"]])
    expect(await ops("repair", "acne", "--all", ...more)).toMatchObject({
      ...{ exitCode: 1, stdout: "", stderr: expect.stringMatching(/^Partner acne has no bookings\./) },
    });
});

test("all bookings of a partner are read once, however many pages they take", async () => {
  const references = Array.from({ length: 2_000 }, (_, number) => `MANY-${number}`);
  const [first] = toLog([event(1, "create", "A")]);
  if (!first?.after) throw new Error("A booking has an event.");
  const state = first.after;
  await insertBookings(
    pool,
    references.map((reference) => ({
      ...{ ...trip, reference, bookingKey: bookingKey("acme", "trip", reference), bookingId: randomUUID() },
      ...{ state, revision: 1, newContent: null },
    })),
  );
  await execute(url, "vacuum analyze bookings");
  const before = await countRead();
  expect((await ops("verify", "acme")).stdout).toContain("2000 bookings");
  // Once for their state, and once for their content.
  await waitFor(async () => expect((await countRead()) - before).toBeGreaterThan(3_999));
  expect((await countRead()) - before).toBeLessThan(5_000);
});

/** How many bookings have been read, as far as connections that have ended tell. */
async function countRead(): Promise<number> {
  const { rows } = await pool.query(
    "select (seq_tup_read + coalesce(idx_tup_fetch, 0))::int as count from pg_stat_user_tables where relid = 'bookings'::regclass",
  );
  return rows[0].count;
}

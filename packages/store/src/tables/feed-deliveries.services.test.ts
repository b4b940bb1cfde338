import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { inTransaction } from "../connect/transaction.ts";
import {
  discardFeedDeadLetters,
  listFeedDeadLetters,
  replayFeedDeadLetters,
  replayFeedSince,
} from "./feed-deliveries.ts";
import { changeSubscription, findSubscription, type Subscription } from "./subscriptions.ts";

const { pool } = useTestDatabase({ maxConnections: 2 });

const booking = (letter: string) => `00000000-0000-4000-8000-${letter.repeat(12)}`;
const [a, b, c] = [booking("a"), booking("b"), booking("c")] as const;

/**
 * Ten changes, an hour apart, of which the newest was made an hour ago: of the bookings a, b and c in turn. Two readers
 * have dealt with nine.
 */
beforeEach(async () => {
  await pool.query(`truncate feed_readers, booking_changes cascade;
    update feed_position set last_id = 10, kept_from = 1`);
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
       sequence, changed_at)
     select id, ($1::uuid[])[1 + (id - 1) % 3], 'acme', 'trip', 'T' || (id - 1) % 3, 1 + id / 3,
       case when id <= 3 then 'created' else 'updated' end, gen_random_uuid(), id, now() - make_interval(hours => 11 - id)
     from generate_series(1, 10) as id`,
    [[a, b, c]],
  );
  await pool.query(
    `insert into feed_readers (name, last_id, active_id)
     select name, 9, gen_random_uuid() from unnest(array['posts', 'others']) as name`,
  );
});

const isDue = { retry_at: null, died_at: null };

async function insertDelivery(more: Record<string, unknown>, reader = "posts"): Promise<void> {
  const delivery = {
    reader,
    attempts: 40,
    first_failed_at: new Date(0),
    last_failed_at: new Date(1),
    ...isDue,
    ...more,
  };
  const names = Object.keys(delivery);
  await pool.query(
    `insert into feed_deliveries (${names.join(", ")}) values (${names.map((_, place) => `$${place + 1}`).join(", ")})`,
    Object.values(delivery),
  );
}

const dead = (bookingId: string, changeId: number) => ({
  booking_id: bookingId,
  change_id: changeId,
  died_at: new Date(2),
  failure: "http-500",
});

async function readDeliveries(reader = "posts"): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select booking_id as booking, done_id::int as done, change_id::int as change, attempts,
       retry_at <= now() as "isDue", died_at is not null as "isDead"
     from feed_deliveries where reader = $1 order by booking_id`,
    [reader],
  );
  return rows;
}

async function readLease(): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select name, last_id::int as "lastId", active_id is not null as "isActive" from feed_readers order by name`,
  );
  return rows;
}

const readFailing = async () =>
  (await pool.query("select name from feed_readers where failing_since is not null")).rows;

const othersGoOn = { name: "others", lastId: 9, isActive: true };

test("the dead letters of a reader are listed in the order of the feed, with what the feed says", async () => {
  await insertDelivery(dead(b, 5));
  await insertDelivery(dead(a, 4));
  await insertDelivery({ booking_id: c, change_id: 6, retry_at: new Date() });
  await insertDelivery(dead(c, 6), "others");
  const letter = { partner: "acme", change: "updated", referenceKind: "trip", attempts: 40, failure: "http-500" };
  const times = { firstFailedAt: new Date(0), lastFailedAt: new Date(1), diedAt: new Date(2) };
  expect(await listFeedDeadLetters(pool, "posts", 10)).toEqual([
    { changeId: 4, bookingId: a, reference: "T0", ...letter, ...times },
    { changeId: 5, bookingId: b, reference: "T1", ...letter, ...times },
  ]);
  expect(await listFeedDeadLetters(pool, "posts", 1)).toHaveLength(1);
  await pool.query("delete from booking_changes where id = 4");
  expect(await listFeedDeadLetters(pool, "posts", 1)).toMatchObject([{ changeId: 4, partner: null, reference: null }]);
});

test("dead letters that are replayed are due at once with all attempts, and the process reads them again", async () => {
  await insertDelivery(dead(a, 4));
  await insertDelivery(dead(b, 5));
  await insertDelivery(dead(b, 5), "others");
  const replay = (ids: number[] | null) => inTransaction(pool, (client) => replayFeedDeadLetters(client, "posts", ids));
  expect(await replay([4, 9])).toBe(1);
  expect(await readDeliveries()).toEqual([
    { booking: a, done: null, change: 4, attempts: 0, isDue: true, isDead: false },
    { booking: b, done: null, change: 5, attempts: 40, isDue: null, isDead: true },
  ]);
  expect(await readLease()).toEqual([othersGoOn, { name: "posts", lastId: 9, isActive: false }]);
  expect(await replay(null)).toBe(1);
  expect(await replay(null)).toBe(0);
  expect(await readDeliveries("others")).toMatchObject([{ isDead: true }]);
});

test("a dead letter that is discarded counts as delivered, and a later change behind it is due", async () => {
  await insertDelivery(dead(a, 1));
  await insertDelivery(dead(b, 8));
  await insertDelivery(dead(c, 9));
  const discard = (ids: number[]) => inTransaction(pool, (client) => discardFeedDeadLetters(client, "posts", ids));
  expect(await discard([1, 8])).toBe(2);
  expect(await discard([1])).toBe(0);
  expect(await readDeliveries()).toEqual([
    { booking: a, done: 1, change: 4, attempts: 0, isDue: true, isDead: false },
    { booking: b, done: 8, change: null, attempts: 0, isDue: null, isDead: false },
    { booking: c, done: null, change: 9, attempts: 40, isDue: null, isDead: true },
  ]);
  expect(await readLease()).toEqual([othersGoOn, { name: "posts", lastId: 9, isActive: false }]);
});

test("a change that the reader has not come to is not due early behind one that is discarded", async () => {
  await insertDelivery(dead(a, 7));
  expect(await inTransaction(pool, (client) => discardFeedDeadLetters(client, "posts", [7]))).toBe(1);
  expect(await readDeliveries()).toMatchObject([{ booking: a, done: 7, change: null }]);
});

test.each([
  ["replays a dead letter", () => replayFeedDeadLetters(pool, "posts", null)],
  ["discards one", () => discardFeedDeadLetters(pool, "posts", [4])],
  ["replays the feed", () => replayFeedSince(pool, "posts", hoursAgo(4))],
])("whoever %s has a subscription that has failed for days begin with a clean record", async (_, operate) => {
  await pool.query("update feed_readers set failing_since = now() - interval '6 days'");
  await insertDelivery(dead(a, 4));
  await operate();
  expect(await readFailing()).toEqual([{ name: "others" }]);
});

const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);
const replaySince = (since: Date) => inTransaction(pool, (client) => replayFeedSince(client, "posts", since));

test("a reader that is moved back is given everything since that time again, whatever it had done", async () => {
  await insertDelivery({ booking_id: a, done_id: 10 });
  await insertDelivery({ booking_id: b, change_id: 8, retry_at: new Date() });
  await insertDelivery(dead(c, 3));
  // Change 7 was made four hours ago.
  expect(await replaySince(hoursAgo(4.05))).toBe(3);
  expect(await readLease()).toEqual([othersGoOn, { name: "posts", lastId: 6, isActive: false }]);
  expect(await readDeliveries()).toMatchObject([{ booking: c, change: 3, isDead: true }]);
});

test("a reader that is moved back is told once more that a booking has left its filter", async () => {
  await pool.query(
    `insert into feed_handed select reader, unnest($1::uuid[]), false from unnest(array['posts', 'others']) as reader`,
    [[a, b]],
  );
  // Change 9 is of c, and change 10 of a.
  await replaySince(hoursAgo(2.05));
  const { rows } = await pool.query(`select reader, booking_id = $1 as "isA" from feed_handed where is_inside`, [a]);
  expect(rows).toEqual([{ reader: "posts", isA: true }]);
});

test("a subscription that is moved back counts as added there, so that a filter finds what it was given", async () => {
  await pool.query(
    `insert into subscriptions (name, payload, from_id, token_sha256, created_by)
     select name, 'thin', 8, sha256(name::bytea), 'tester' from unnest(array['posts', 'others']) as name`,
  );
  onTestFinished(async () => void (await pool.query("delete from subscriptions")));
  await replaySince(hoursAgo(4.05));
  await replaySince(new Date());
  const { rows } = await pool.query(
    "select name, from_id::int as from, given_id::int as given from subscriptions order by name",
  );
  expect(rows).toEqual([
    { name: "others", from: 8, given: 0 },
    { name: "posts", from: 6, given: 9 },
  ]);
});

test("a first filter knows what was given before a replay", async () => {
  await pool.query(
    `insert into subscriptions (name, url, mode, payload, from_id, signature, signing_key, created_by)
     values ('posts', 'https://example.com', 'latest', 'thin', 7, 'hmac', 'whsec_', 'tester')`,
  );
  onTestFinished(async () => void (await pool.query("delete from subscriptions")));
  await pool.query("update feed_readers set last_id = 8 where name = 'posts'");
  await replaySince(hoursAgo(4.05));
  const subscription = await findSubscription(pool, "posts");
  const filtered = { ...(subscription as Subscription), countries: ["ES"] };
  expect(await changeSubscription(pool, "posts", filtered, { remembers: true, resumes: false })).toBe("changed");
  const { rows } = await pool.query(
    `select booking_id as booking, is_inside as "isInside" from feed_handed order by booking_id`,
  );
  // Changes 7 and 8 were given. Change 9 of c was not, and 10 is of a.
  expect(rows).toEqual([
    { booking: a, isInside: true },
    { booking: b, isInside: true },
    { booking: c, isInside: false },
  ]);
});

test("a change of a long transaction, which says that it is older than the one before it, is not skipped", async () => {
  await pool.query("update booking_changes set changed_at = now() - interval '241 minutes' where id = 8");
  expect(await replaySince(hoursAgo(4.01))).toBe(3);
});

test("a reader is never moved forward, nor before what is kept", async () => {
  expect(await replaySince(new Date())).toBe(0);
  expect(await readLease()).toEqual([othersGoOn, { name: "posts", lastId: 9, isActive: false }]);
  await pool.query("delete from booking_changes where id < 4; update feed_position set kept_from = 4");
  expect(await replaySince(new Date(0))).toBe(6);
  expect(await readLease()).toMatchObject([othersGoOn, { name: "posts", lastId: 3 }]);
});

test("a reader that starts over stays so, and one that does not exist is told apart", async () => {
  await pool.query("update feed_readers set last_id = null where name = 'posts'");
  expect(await replaySince(hoursAgo(4))).toBe(0);
  expect(await readLease()).toMatchObject([othersGoOn, { name: "posts", lastId: null }]);
  expect(await inTransaction(pool, (client) => replayFeedSince(client, "unknown", hoursAgo(4)))).toBeUndefined();
});

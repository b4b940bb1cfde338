import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 1 });

/** Ten changes, of which the first two have been removed. The newest was made an hour ago, each other an hour earlier. */
beforeEach(async () => {
  await pool.query(
    "truncate feed_readers, booking_changes cascade; update feed_position set last_id = 10, kept_from = 3",
  );
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
       sequence, changed_at)
     select id, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), id,
       now() - make_interval(hours => 11 - id)
     from generate_series(3, 10) as id`,
  );
  await pool.query(
    `insert into feed_readers (name, last_id, moved_at, seen_at) values
       ('up-to-date', 10, now(), now()),
       ('behind', 7, now(), now() - interval '1 day'),
       ('missed', 1, now(), now() - interval '30 days'),
       ('reset', null, now() - interval '5 minutes', now())`,
  );
});

const feed = (...args: string[]) => runOps(["feed", ...args], { environment: { DATABASE_URL: url } });

test("readers are listed with what each has not dealt with, and for how long, the furthest behind first", async () => {
  const { stdout } = await feed("list", "--json");
  const readers = JSON.parse(stdout) as { lagMs: number; owner: string; seenAt: string }[];
  const nothingFails = { parked: 0, dead: 0, failingSince: null, breakerOpenedAt: null, pausedAt: null };
  const inMinutes = ({ lagMs, owner: _owner, seenAt: _seenAt, ...reader }: (typeof readers)[number]) => {
    expect(reader).toMatchObject(nothingFails);
    return { ...reader, lagMinutes: Math.round(lagMs / 60_000) };
  };
  expect(readers.map(inMinutes)).toMatchObject([
    { name: "missed", lastId: 1, lagChanges: 9, lagMinutes: 8 * 60, hasMissedChanges: true },
    { name: "behind", lastId: 7, lagChanges: 3, lagMinutes: 3 * 60, hasMissedChanges: false },
    { name: "reset", lastId: null, lagChanges: 8, lagMinutes: 5, hasMissedChanges: false },
    { name: "up-to-date", lastId: 10, lagChanges: 0, lagMinutes: 0, hasMissedChanges: false },
  ]);
  const { rows } = await pool.query("select current_user as owner");
  const { owner } = rows[0];
  expect(new Set(readers.map((reader) => reader.owner))).toEqual(new Set([owner]));
  const table = await feed("list");
  expect(table.stdout.split("\n").map((line) => line.split(/ {2,}/).slice(0, 7))).toMatchObject([
    ["READER", "CHANGES BEHIND", "FOR", "PARKED", "DEAD", "STATE", "LAST SEEN"],
    ["missed", "9", "8 h", "0", "0", "has missed changes", "30 d ago"],
    ["behind", "3", "3 h", "0", "0", "reads", "24 h ago"],
    ["reset", "8", "5 min", "0", "0", "starts over", "0 s ago"],
    ["up-to-date", "0", "0", "0", "up to date", "0 s ago", owner],
    [""],
  ]);
});

test("a reader's failures are listed with it", async () => {
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, retry_at, died_at) values
       ('behind', gen_random_uuid(), 3, now(), null), ('behind', gen_random_uuid(), 4, now(), null),
       ('behind', gen_random_uuid(), 5, null, now()), ('up-to-date', gen_random_uuid(), 6, now(), null)`,
  );
  await pool.query("insert into feed_deliveries (reader, booking_id, done_id) values ('behind', gen_random_uuid(), 9)");
  await pool.query("update feed_readers set breaker_opened_at = now(), failing_since = now() where name = 'behind'");
  const { stdout } = await feed("list", "--json");
  expect(JSON.parse(stdout)).toMatchObject([
    { name: "missed", parked: 0, dead: 0 },
    { name: "behind", parked: 2, dead: 1, breakerOpenedAt: expect.any(String), failingSince: expect.any(String) },
    { name: "reset" },
    { name: "up-to-date", parked: 1, dead: 0 },
  ]);
  expect((await feed("list")).stdout).toMatch(/^behind .* 2 +1 +fails: one booking at a time is tried /m);
});

test("a reader's dead letters are listed, replayed and discarded by the ids of their changes", async () => {
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, change_id, died_at, attempts, failure)
     select 'behind', booking_id, id, now(), 40, 'http-500' from booking_changes where id in (5, 6, 7)`,
  );
  const letters = (...args: string[]) => feed("dead-letters", "behind", ...args);
  expect((await letters()).stdout).toMatch(/^CHANGE ID .*\n5 .* http-500 +40 +created +acme +T .*\n6 .*\n7 .*\n$/);
  expect(await letters("--replay", "5")).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("Add --yes") });
  expect(await letters("--replay", "5", "--replay", "4", "--yes")).toMatchObject({
    exitCode: 1,
    stderr: "behind has no dead letter of change 4. Nothing was done.\n",
  });
  expect(await letters("--replay", "5", "--yes")).toMatchObject({
    stdout: "1 dead letter of behind: replayed.\n",
    stderr: "Replay 1 dead letter of behind.\n",
  });
  expect(JSON.parse((await letters("--discard", "6", "--yes", "--json")).stdout)).toEqual({ discarded: 1 });
  expect(JSON.parse((await letters("--json")).stdout)).toMatchObject([{ changeId: 7, failure: "http-500" }]);
  expect(JSON.parse((await letters("--replay-all", "--yes", "--json")).stdout)).toEqual({ replayed: 1 });
  expect(await letters()).toMatchObject({ exitCode: 0, stdout: "No dead letters.\n" });
  expect(await feed("dead-letters", "unknown")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("There is no reader unknown."),
  });
  expect(await letters("--replay-all", "--discard", "6", "--yes")).toMatchObject({ exitCode: 2 });
});

test("a database without readers has none to list", async () => {
  await pool.query("truncate feed_readers cascade");
  expect(await feed("list")).toMatchObject({ exitCode: 0, stdout: "No program reads the feed.\n" });
});

test("a reader that is reset starts over, and stays its role's", async () => {
  await pool.query("update feed_readers set owner = 'arrivals'");
  expect(await feed("reset", "behind", "--yes")).toMatchObject({
    exitCode: 0,
    stdout: "The reader behind starts over.\n",
  });
  const { rows } = await pool.query(
    "select name, last_id, owner from feed_readers where last_id is null order by name",
  );
  expect(rows).toEqual([
    { name: "behind", last_id: null, owner: "arrivals" },
    { name: "reset", last_id: null, owner: "arrivals" },
  ]);
});

test("a reader that goes back is given all changes since a time again, failed and delivered ones too", async () => {
  await pool.query(
    `insert into feed_deliveries (reader, booking_id, done_id, change_id, retry_at, died_at)
     select 'behind', booking_id, case id when 6 then 6 end, case when id <> 6 then id end,
       case id when 7 then now() end, case id when 5 then now() end
     from booking_changes where id in (5, 6, 7)`,
  );
  expect((await feed("replay", "behind", "--since", "6h")).stderr).toContain("Add --yes");
  // The sixth change was made five hours ago.
  expect(await feed("replay", "behind", "--since", "330m", "--yes")).toMatchObject({
    ...{ exitCode: 0, stdout: "behind is given 2 changes again.\n" },
  });
  const { rows } = await pool.query(
    "select last_id::int as place, change_id::int as dead from feed_readers join feed_deliveries on reader = name",
  );
  expect(rows).toEqual([{ place: 5, dead: 5 }]);
  expect(JSON.parse((await feed("replay", "up-to-date", "--since", "0", "--yes", "--json")).stdout)).toEqual({
    changes: 0,
  });
  await pool.query(
    `insert into subscriptions (name, payload, from_id, token_sha256, created_by)
     values ('behind', 'thin', 0, sha256('token'), 'tester')`,
  );
  onTestFinished(async () => void (await pool.query("delete from subscriptions")));
  expect(await feed("replay", "behind", "--since", "6h", "--yes")).toMatchObject({
    ...{ exitCode: 1, stderr: expect.stringContaining("The subscriber of behind pulls") },
  });
  const unknown = await feed("replay", "unknown", "--since", "1h", "--yes");
  expect(unknown).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("There is no reader unknown.") });
});

test("a reader is removed once its program has stopped", async () => {
  expect(await feed("remove", "behind", "--yes")).toMatchObject({
    exitCode: 0,
    stdout: "Removed the reader behind.\n",
  });
  const running = await feed("remove", "up-to-date", "--yes");
  expect(running).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("Stop it first.") });
  const { rows } = await pool.query("select name from feed_readers order by name");
  expect(rows.map(({ name }) => name)).toEqual(["missed", "reset", "up-to-date"]);
});

test.each(["reset", "remove"])("%s asks first, and names no reader that does not exist", async (command) => {
  expect(await feed(command, "behind")).toMatchObject({ exitCode: 2, stderr: expect.stringContaining("--yes") });
  expect(await feed(command, "unknown", "--yes")).toMatchObject({
    exitCode: 1,
    stderr: expect.stringContaining("There is no reader unknown."),
  });
  expect((await pool.query("select from feed_readers where last_id = 7")).rowCount).toBe(1);
});

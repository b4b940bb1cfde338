import { randomBytes, randomUUID } from "node:crypto";
import { redisUrl, uniquePrefix } from "@booking-events/harness";
import { execute } from "@booking-events/harness/execute";
import { useTestDatabase } from "@booking-events/harness/test-database";
import { beforeEach, expect, test } from "vitest";
import { runOps } from "../testing/run-ops.ts";

const { pool, url } = useTestDatabase({ maxConnections: 2 });
const eventCount = 120;

beforeEach(async () => {
  await pool.query("truncate bookings, booking_events, booking_changes, dead_letters, operator_actions");
  await pool.query("delete from log_retention; insert into log_retention default values");
  await pool.query("drop table if exists booking_events_2020_01");
});

const environment = { DATABASE_URL: url, REDIS_URL: redisUrl(), QUEUE_PREFIX: uniquePrefix() };

function ops(...args: string[]) {
  return runOps(args, { environment });
}

/** Events in a partition of their month, and others without one. */
async function fill(): Promise<void> {
  await pool.query(
    `create table booking_events_2020_01 (like booking_events including all);
     do $$ begin execute format('alter table booking_events attach partition booking_events_2020_01
       for values from (%L) to (%L)', first_event_id('2020-01-01T00:00Z'), first_event_id('2020-02-01T00:00Z')); end $$`,
  );
  for (const day of ["2020-01-15", "2020-02-15"]) {
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at, processed_at)
       select (left(first_event_id($1)::text, 24) || lpad(n::text, 12, '0'))::uuid, 'acme', 'update', 'trip', 'T', '', n,
         '{}', '', 'updated', $1, $1
       from generate_series(1, ${eventCount}) as n`,
      [day],
    );
  }
  await pool.query(
    `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id, sequence,
       changed_at)
     values (1, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), 1, '2020-01-01')`,
  );
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, payload,
       last_sequence, revision, created_at, updated_at, deleted_at)
     values ('', 'acme', 'trip', 'T', 'deleted', gen_random_uuid(), 1, '{}', 1, 1, '2020-01-01', '2020-01-01', '2020-01-01')`,
  );
  await pool.query(
    `insert into operator_actions (id, began_at, operator, command, arguments, did)
     values (gen_random_uuid(), '2020-01-01', 'ada', 'queue pause', '{}', '{}')`,
  );
  await pool.query(
    `insert into dead_letters (event_id, error_code, error, attempts, envelope, failed_at, resolved_at)
     values (gen_random_uuid(), 'X', 'x', 1, '', '2020-01-01', '2020-01-01'),
       (gen_random_uuid(), 'X', 'x', 1, '', '2020-01-01', null), (gen_random_uuid(), 'X', 'x', 1, '', now(), null)`,
  );
  await execute(url, "analyze");
}

test("retention --dry-run needs no right but to read the tables", async () => {
  await fill();
  const role = `reader_${randomBytes(4).toString("hex")}`;
  await pool.query(
    `create role ${role} login password 'x';
     grant select on bookings, booking_events, booking_changes, dead_letters, operator_actions, log_retention
       to ${role}`,
  );
  try {
    const asReader = Object.assign(new URL(url), { username: role, password: "x" }).href;
    const shown = await runOps(["retention", "--dry-run", "--json"], { environment: { DATABASE_URL: asReader } });
    expect(shown).toMatchObject({ exitCode: 0, stderr: "", stdout: expect.stringContaining("booking_events_2020_01") });
  } finally {
    await pool.query(`drop owned by ${role}; drop role ${role}`);
  }
});

test("retention --dry-run shows what maintain removes then, and removes nothing", async () => {
  await fill();
  const dryRun = await ops("retention", "--dry-run", "--json");
  expect(dryRun).toMatchObject({ exitCode: 0, stderr: "" });
  const removals = JSON.parse(dryRun.stdout) as { table: string; rows: number; bytes: number }[];
  const rows = removals.map(({ table, rows }) => [table, rows]);
  expect(rows).toEqual([
    ["booking_events_2020_01", eventCount],
    ["booking_events", eventCount],
    ["booking_changes", 1],
    ["bookings", 1],
    ["dead_letters", 1],
    ["dead_letters", 1],
    ["operator_actions", 1],
  ]);
  for (const { bytes } of removals) expect(bytes).toBeGreaterThan(0);
  const { rowCount } = await pool.query("select from booking_events");
  expect(rowCount).toBe(2 * eventCount);

  expect(await ops("maintain")).toEqual({
    ...{ exitCode: 0, stderr: "" },
    stdout: [
      ...["Dropped partition booking_events_2020_01", "Removed 240 events", "Removed 1 change"],
      "Removed the content of 1 deleted booking",
      ...["Removed 2 dead letters", "Of these, open: 1 dead letter", "Removed 1 recorded action", ""],
    ].join("\n"),
  });
  expect((await pool.query("select from booking_events")).rowCount).toBe(0);
  expect((await pool.query("select from dead_letters")).rowCount).toBe(1);
  expect(await ops("maintain")).toMatchObject({ exitCode: 0, stdout: "Nothing to do.\n" });
});

test("retention --dry-run shows nothing in tables that PostgreSQL has never analyzed and that are empty", async () => {
  const name = `retention_${randomUUID().replaceAll("-", "")}`;
  const empty = { DATABASE_URL: Object.assign(new URL(url), { pathname: `/${name}` }).href };
  await execute(url, `create database ${name}`);
  try {
    expect((await runOps(["migrate"], { environment: empty })).exitCode).toBe(0);
    const { stdout } = await runOps(["retention", "--dry-run", "--json"], { environment: empty });
    const removals = JSON.parse(stdout) as { rows: number; bytes: number }[];
    expect(removals.map(({ rows, bytes }) => [rows, bytes])).toEqual(Array(6).fill([0, 0]));
  } finally {
    await execute(url, `drop database ${name}`);
  }
});

test("what is kept forever is named as such, and stays", async () => {
  await fill();
  const forever = { RETENTION_DAYS: "0", DELETED_RETENTION_DAYS: "0", DEAD_LETTER_RETENTION_DAYS: "0" };
  const run = (...args: string[]) => runOps(args, { environment: { ...environment, ...forever } });
  const { stdout } = await run("retention", "--dry-run");
  expect(stdout.match(/kept forever/g)).toHaveLength(6);
  expect((await run("maintain")).stdout).toBe("Nothing to do.\n");
  expect((await pool.query("select from booking_events")).rowCount).toBe(2 * eventCount);
});

test("what the workers have recorded counts, and not the settings of the command", async () => {
  await fill();
  await pool.query(
    `update log_retention set retention_days = 0, deleted_retention_days = 0, dead_letter_retention_days = 0,
       duplicate_window_hours = 72`,
  );
  const run = (...args: string[]) => runOps(args, { environment: { ...environment, RETENTION_DAYS: "1" } });
  expect((await run("retention", "--dry-run")).stdout.match(/kept forever/g)).toHaveLength(6);
  expect((await run("maintain")).stdout).toBe("Nothing to do.\n");
  expect((await pool.query("select from booking_events")).rowCount).toBe(2 * eventCount);
});

test("maintain says so if a worker is doing the same, or something is locked", async () => {
  await fill();
  const other = await pool.connect();
  try {
    await other.query(
      "begin; select pg_advisory_xact_lock(hashtext('booking-events maintenance'), hashtext('public'))",
    );
    expect(await ops("maintain")).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("Another process") });
    await other.query("rollback; begin; select from booking_events");
    const { exitCode, stderr } = await ops("maintain");
    expect([exitCode, stderr]).toEqual([1, "Others have locked a table for more than a second. Try again later.\n"]);
  } finally {
    other.release(true);
  }
});

test("retention needs --dry-run, so that nobody thinks it removes something", async () => {
  expect(await ops("retention")).toMatchObject({ exitCode: 2 });
});

test("maintain on a database that takes no writes says so, a sentence for each step", async () => {
  await fill();
  const readOnly = `${url}?options=${encodeURIComponent("-c default_transaction_read_only=on")}`;
  const { exitCode, stderr } = await runOps(["maintain"], { environment: { ...environment, DATABASE_URL: readOnly } });
  expect([exitCode, stderr.split("\n").length]).toEqual([1, 2]);
  expect(stderr).toContain("(25006): cannot execute");
  expect(stderr).not.toContain("\\u000a");
});

test("maintain removes nothing while the newest event lies in the future, or Redis does not answer", async () => {
  await fill();
  await pool.query(
    "update booking_events set sequence = $1 where id = (select id from booking_events order by id desc limit 1)",
    [(Date.now() + 3 * 3_600_000 + 60_000) * 1_000],
  );
  const { exitCode, stderr } = await ops("maintain");
  expect([exitCode, stderr]).toEqual([
    1,
    expect.stringMatching(/^Nothing is removed\. The newest event was received 3 hours later than .* clock shows\./),
  ]);
  const down = { ...environment, REDIS_URL: "redis://127.0.0.1:1" };
  expect((await runOps(["maintain"], { environment: down })).stderr).toMatch(/does not answer \(ECONNREFUSED\)/);
  expect((await pool.query("select from booking_events")).rowCount).toBe(2 * eventCount);
});

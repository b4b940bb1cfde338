import { waitFor } from "@booking-events/harness";
import { useTestDatabase } from "@booking-events/harness/test-database";
import type pg from "pg";
import { beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { createPool } from "../connect/pool.ts";
import { testSchemaOf } from "../connect/transaction-limits.ts";
import { findProcessed } from "../index.ts";
import { insertEvents } from "../tables/booking-events.ts";
import { bookingKey } from "../tables/booking-key.ts";
import { maintain, type RetentionRules } from "./maintain.ts";
import { migrate } from "./migrate.ts";

const clocksAgree = { findClockProblem: async () => null };

const { pool, url } = useTestDatabase({ maxConnections: 6 });

// A partition is not created while this table is vacuumed, as it may be after thousands of deleted rows.
beforeAll(() => pool.query("alter table booking_events_default set (autovacuum_enabled = off)"));

const keepAll: RetentionRules = { retentionDays: 0, deletedRetentionDays: 0, deadLetterRetentionDays: 0 };
const day = 24 * 60 * 60 * 1_000;
const now = new Date();

/** The time is that of the middle of the month. */
function monthsFromNow(months: number): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months, 15));
}

function partitionOf(time: Date): string {
  return `booking_events_${time.toISOString().slice(0, 7).replace("-", "_")}`;
}

/** A UUIDv7 of that time. */
function idAt(time: Date, number = 0): string {
  const hex = time.getTime().toString(16).padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(number).padStart(12, "0")}`;
}

/** As if it had been applied when it was received. */
async function log(id: string, receivedAt: Date, reference = "TRIP-1"): Promise<void> {
  const identity = { partner: "acme", referenceKind: "trip" as const, reference };
  await insertEvents(pool, [
    {
      ...{ ...identity, id, bookingKey: bookingKey("acme", "trip", reference), kind: "update", receivedAt },
      ...{ sequence: receivedAt.getTime() * 1_000, idempotencyKey: null, payload: '{"a":1}' },
      ...{ contentDigest: "00".repeat(16), outcome: "updated", duplicateOf: null, warnings: [], after: null },
    },
  ]);
  await pool.query("update booking_events set processed_at = $2 where id = $1", [id, receivedAt]);
}

/** Which partition each event is in, by its id. */
async function places(): Promise<Record<string, string>> {
  const { rows } = await pool.query("select id, tableoid::regclass::text as name from booking_events order by id");
  return Object.fromEntries(rows.map(({ id, name }) => [id, name]));
}

async function partitions(): Promise<string[]> {
  const { rows } = await pool.query(
    "select inhrelid::regclass::text as name from pg_inherits where inhparent = 'booking_events'::regclass order by 1",
  );
  return rows.map(({ name }) => name);
}

async function insertDeletedBooking(reference: string, deletedAt: Date): Promise<void> {
  await pool.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, last_sequence,
       revision, payload, guest_hashes, created_at, updated_at, deleted_at)
     values ($1, 'acme', 'trip', $2, 'deleted', gen_random_uuid(), 1, 1, 1, '{"name":"Guest"}', '{1}', $3, $3, $3)`,
    [bookingKey("acme", "trip", reference), reference, deletedAt],
  );
}

test("changes that a reader has still to read stay up to twice as long if it runs, and an operator is told", async () => {
  await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
  await migrate(url);
  for (const [id, months] of [-30, -30, -15, -15, 0].entries())
    await pool.query(
      `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
         sequence, changed_at)
       values ($1, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), 1, $2)`,
      [id + 1, monthsFromNow(months)],
    );
  await pool.query(`update feed_position set last_id = 5;
    insert into feed_readers (name, last_id, seen_at) values
      ('gone', 0, now() - interval '2 days'), ('behind', 1, now()), ('reset', null, now())`);
  const kept = async () => (await pool.query("select id from booking_changes order by id")).rows.map(({ id }) => id);
  const rules = { ...keepAll, retentionDays: 365 };
  const { problems } = await maintain(pool, rules, clocksAgree);
  expect(await kept()).toEqual([3, 4, 5]);
  await pool.query("update feed_readers set last_id = 3 where name = 'behind'");
  const later = await maintain(pool, rules, clocksAgree);
  expect(await kept()).toEqual([4, 5]);
  expect([...problems, ...later.problems]).toEqual([expect.stringMatching(/^These readers .*: behind\. /)]);
  await pool.query("update feed_readers set seen_at = now() - interval '2 days'");
  expect((await maintain(pool, rules, clocksAgree)).problems).toEqual([]);
  expect(await kept()).toEqual([5]);
});

describe("partitions", () => {
  beforeEach(async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await migrate(url);
  });

  test("of this month and the next two are there from the start", async () => {
    const months = [0, 1, 2].map((months) => partitionOf(monthsFromNow(months)));
    expect(await partitions()).toEqual([...months, "booking_events_default"].toSorted());
    expect((await maintain(pool, keepAll, clocksAgree)).createdPartitions).toEqual([]);
  });

  test("that are missing stop no event, and get their events when they are created", async () => {
    const name = partitionOf(monthsFromNow(1));
    await pool.query(`drop table ${name}`);
    const id = idAt(monthsFromNow(1));
    await log(id, monthsFromNow(1));
    expect(await places()).toEqual({ [id]: "booking_events_default" });
    expect((await maintain(pool, keepAll, clocksAgree)).createdPartitions).toEqual([name]);
    expect(await places()).toEqual({ [id]: name });
    expect([...(await findProcessed(pool, [id]))]).toEqual([[id, "updated"]]);
  });

  test("that are older than the horizon are dropped, and the month of the horizon is kept whole", async () => {
    // As if the database were years old.
    for (const months of [-3, -2, -1]) {
      const [from, to] = [0, 1].map((more) =>
        new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + months + more)).toISOString(),
      );
      await pool.query(
        `create table ${partitionOf(monthsFromNow(months))} (like booking_events including all);
         do $$ begin execute format('alter table booking_events attach partition %I for values from (%L) to (%L)',
           '${partitionOf(monthsFromNow(months))}', first_event_id('${from}'), first_event_id('${to}')); end $$`,
      );
      await log(idAt(monthsFromNow(months)), monthsFromNow(months));
    }
    const horizonDays = Math.floor((now.getTime() - Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 20)) / day);
    const { droppedPartitions } = await maintain(pool, { ...keepAll, retentionDays: horizonDays }, clocksAgree);
    expect(droppedPartitions).toEqual([-3, -2].map((months) => partitionOf(monthsFromNow(months))));
    expect(Object.keys(await places())).toEqual([idAt(monthsFromNow(-1))]);
    const { rows } = await pool.query("select horizon from log_retention");
    expect(rows).toEqual([{ horizon: new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1)) }]);
  });

  test("are kept if nothing is to be removed", async () => {
    await log(idAt(monthsFromNow(-30)), monthsFromNow(-30));
    await maintain(pool, keepAll, clocksAgree);
    expect(Object.keys(await places())).toHaveLength(1);
    expect((await pool.query("select horizon from log_retention")).rows).toEqual([{ horizon: null }]);
  });
});

describe("old events without a partition of their month", () => {
  beforeEach(async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await migrate(url);
  });

  test("are deleted, but not those that were applied a short time ago", async () => {
    await log(idAt(monthsFromNow(-30), 1), monthsFromNow(-30));
    await log(idAt(monthsFromNow(-30), 2), now);
    await log(idAt(now), now);
    const { removed } = await maintain(pool, { ...keepAll, retentionDays: 400 }, clocksAgree);
    expect(removed.booking_events).toBe(1);
    expect(Object.keys(await places())).toEqual([idAt(monthsFromNow(-30), 2), idAt(now)]);
  });

  test("are deleted from the default partition even if their ids are of times to come", async () => {
    await log(idAt(monthsFromNow(200), 1), monthsFromNow(-30));
    await log(idAt(monthsFromNow(200), 2), now);
    expect((await maintain(pool, { ...keepAll, retentionDays: 400 }, clocksAgree)).removed.booking_events).toBe(1);
    expect(Object.keys(await places())).toEqual([idAt(monthsFromNow(200), 2)]);
  });

  test("are found without reading the others of the default partition", async () => {
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at)
       select (left($1::text, 24) || lpad(n::text, 12, '0'))::uuid, 'acme', 'update', 'trip', 'T', '\\x00', n, '{}',
         '\\x00', 'updated', $2
       from generate_series(1, 20000) as n`,
      [idAt(monthsFromNow(-3)), monthsFromNow(-3)],
    );
    await log(idAt(monthsFromNow(-30)), monthsFromNow(-30));
    await pool.query("analyze booking_events_default");
    const client = await pool.connect();
    try {
      await client.query("begin");
      expect((await client.query("select delete_old_events(400, now(), 1000) as deleted")).rows).toEqual([
        { deleted: 1 },
      ]);
      const { rows } = await client.query<{ read: number }>(
        `select (coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0))::int as read
         from pg_stat_xact_user_tables where relname = 'booking_events_default'`,
      );
      expect(rows[0]?.read).toBeLessThan(100);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });

  test("are deleted a bounded number at a time", async () => {
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at, processed_at)
       select (left($1::text, 24) || lpad(n::text, 12, '0'))::uuid, 'acme', 'update', 'trip', 'T', '\\x00', n, '{}', '\\x00', 'updated', $2, $2
       from generate_series(1, 110000) as n`,
      [idAt(monthsFromNow(-30)), monthsFromNow(-30)],
    );
    const one = await maintain(pool, { ...keepAll, retentionDays: 400 }, clocksAgree);
    expect([one.removed.booking_events, one.hasMore]).toEqual([100_000, true]);
    const other = await maintain(pool, { ...keepAll, retentionDays: 400 }, clocksAgree);
    expect([other.removed.booking_events, other.hasMore]).toEqual([10_000, false]);
  });
});

test("what operators did goes with the log, and nobody can remove it before", async () => {
  await pool.query("truncate operator_actions");
  for (const months of [-3, -1, 0])
    await pool.query(
      `insert into operator_actions (id, began_at, operator, command, arguments, did)
       values (gen_random_uuid(), $1, 'ada', 'queue pause', '{}', '{}')`,
      [monthsFromNow(months)],
    );
  const count = async () => (await pool.query("select from operator_actions")).rowCount;
  await maintain(pool, keepAll, clocksAgree);
  expect(await count()).toBe(3);
  const { removed } = await maintain(pool, { ...keepAll, retentionDays: 45 }, clocksAgree);
  expect(removed.operator_actions).toBe(1);
  await pool.query("select delete_old_operator_actions(0, now(), 10)");
  expect(await count()).toBe(now.getUTCDate() === 1 ? 2 : 1);
});

test("one process at a time maintains the database, and the others leave it alone", async () => {
  const name = partitionOf(monthsFromNow(2));
  await pool.query(`drop table ${name}`);
  const other: pg.PoolClient = await pool.connect();
  try {
    await other.query("begin");
    await other.query(
      "select pg_advisory_xact_lock(hashtext('booking-events maintenance'), hashtext(current_schema()))",
    );
    expect(await maintain(pool, keepAll, clocksAgree)).toMatchObject({ createdPartitions: [], isBusy: true });
    await other.query("commit");
    const runs = await Promise.all([1, 2, 3].map(() => maintain(pool, keepAll, clocksAgree)));
    expect(runs.flatMap(({ createdPartitions }) => createdPartitions)).toEqual([name]);
  } finally {
    other.release(true);
  }
});

test("a table that others have locked is left alone after a second", async () => {
  const name = partitionOf(monthsFromNow(2));
  await pool.query(`drop table ${name}`);
  const reader = await pool.connect();
  try {
    await reader.query("begin; select from booking_events");
    expect(await maintain(pool, keepAll, clocksAgree)).toMatchObject({
      createdPartitions: [],
      problems: [],
      isLocked: true,
    });
    await reader.query("commit");
    expect(await maintain(pool, keepAll, clocksAgree)).toMatchObject({ createdPartitions: [name], isLocked: false });
  } finally {
    reader.release(true);
  }
});

test("the tables of another schema are maintained there", async () => {
  const schema = "Another schema";
  await migrate(url, { schema });
  const another = createPool({
    databaseUrl: url,
    schema,
    applicationName: "test",
    maxConnections: 2,
    onError: () => {},
  });
  try {
    const name = partitionOf(monthsFromNow(2));
    await another.query(`drop table ${name}`);
    expect(await maintain(another, keepAll, clocksAgree)).toMatchObject({ createdPartitions: [name], problems: [] });
    const { rows } = await another.query("select schemaname from pg_tables where tablename = $1", [name]);
    expect(rows).toContainEqual({ schemaname: schema });
  } finally {
    await another.end();
    await pool.query(`drop schema "${schema}", "${testSchemaOf(schema)}" cascade`);
  }
});

test("statistics of a new partition hold no samples of guests' data", async () => {
  const name = partitionOf(monthsFromNow(2));
  await pool.query(`drop table ${name}`);
  expect((await maintain(pool, keepAll, clocksAgree)).createdPartitions).toEqual([name]);
  const { rows } = await pool.query(
    `select attname from pg_attribute
     where attrelid = $1::regclass and attnum > 0 and attstattarget = 0
     order by attname`,
    [name],
  );
  expect(rows.map(({ attname }) => attname)).toEqual(["content_digest", "idempotency_key", "payload", "reference"]);
});

test("a long step ends when the signal aborts", async () => {
  await pool.query(
    `create or replace function empty_deleted_bookings(
       retention_days integer, at timestamptz, max_bookings integer, max_events integer,
       out emptied_bookings integer, out emptied_events integer
     ) language plpgsql as $$ begin perform pg_sleep(3600); end $$`,
  );
  const stopping = new AbortController();
  const maintained = maintain(
    pool,
    { ...keepAll, deletedRetentionDays: 1 },
    { ...clocksAgree, signal: stopping.signal },
  );
  await waitFor(async () => {
    const { rows } = await pool.query("select from pg_stat_activity where wait_event = 'PgSleep'");
    expect(rows).toHaveLength(1);
  });
  stopping.abort();
  expect((await maintained).removed.bookings).toBe(0);
});

describe("the content of deleted bookings", () => {
  const rules = { ...keepAll, deletedRetentionDays: 30 };
  const manyEvents = 24_000;

  beforeEach(async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await migrate(url);
    // Half of the events are in another partition.
    await insertDeletedBooking("LARGE", monthsFromNow(-3));
    await pool.query(
      `insert into booking_events (id, partner, kind, reference_kind, reference, booking_key, sequence, payload,
         content_digest, outcome, received_at)
       select (left(case when n % 2 = 0 then $1 else $2 end, 24) || lpad(n::text, 12, '0'))::uuid, 'acme', 'update',
         'trip', 'LARGE', $3, n, '{"name":"Guest"}', '\\x00', 'updated', now()
       from generate_series(1, $4::integer) as n`,
      [idAt(monthsFromNow(-3)), idAt(now), bookingKey("acme", "trip", "LARGE"), manyEvents],
    );
    await insertDeletedBooking("SMALL", monthsFromNow(-2));
    await log(idAt(monthsFromNow(-2)), monthsFromNow(-2), "SMALL");
  });

  async function readBookings(): Promise<unknown[]> {
    const { rows } = await pool.query(
      `select reference, payload is not null or guest_hashes <> '{}' as "hasContent", content_removed_at is not null as
         "isRemoved", (
           select count(*)::int from booking_events as event where event.booking_key = bookings.booking_key
             and payload is not null
         ) as events
       from bookings order by reference`,
    );
    return rows;
  }
  const removed = ["LARGE", "SMALL"].map((reference) => ({ reference, hasContent: false, isRemoved: true, events: 0 }));

  test("is removed from a bounded number of events at a time, however many a booking has", async () => {
    await pool.query(
      `create table emptied (events integer);
       create function count_emptied() returns trigger language plpgsql
         as $$ begin insert into emptied select count(*) from changed having count(*) > 0; return null; end $$;
       create trigger count_emptied after update on booking_events referencing new table as changed
         execute function count_emptied()`,
    );
    const { problems, removed: counts, hasMore } = await maintain(pool, rules, clocksAgree);
    expect([problems, counts.bookings, hasMore]).toEqual([[], 2, false]);
    expect(await readBookings()).toEqual(removed);
    const { rows } = await pool.query<{ events: number }>("select events from emptied");
    expect(rows.map(({ events }) => events)).toEqual([20_000, 4_000, 1]);
  });

  test("leads to a booking until its last event is empty, and a later run goes on", async () => {
    const { rows } = await pool.query("select * from empty_deleted_bookings(30, now(), 500, $1)", [manyEvents - 1]);
    expect(rows).toEqual([{ emptied_bookings: 0, emptied_events: manyEvents - 1 }]);
    expect(await readBookings()).toEqual([
      { reference: "LARGE", hasContent: true, isRemoved: false, events: 1 },
      { reference: "SMALL", hasContent: true, isRemoved: false, events: 1 },
    ]);
    await log(idAt(monthsFromNow(-3), manyEvents + 1), monthsFromNow(-3), "LARGE");
    expect((await maintain(pool, rules, clocksAgree)).removed.bookings).toBe(2);
    expect(await readBookings()).toEqual(removed);
  });
});

describe("a step that fails", () => {
  const rules: RetentionRules = { retentionDays: 400, deletedRetentionDays: 30, deadLetterRetentionDays: 90 };
  const longAgo = monthsFromNow(-30);

  beforeEach(async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await migrate(url);
    await createOldPartition();
    await insertDeletedBooking("TRIP-1", longAgo);
    await pool.query(
      `insert into dead_letters (event_id, error_code, error, attempts, envelope, failed_at, resolved_at)
       values (gen_random_uuid(), 'X', 'x', 1, '', $1, $1)`,
      [longAgo],
    );
  });

  async function createOldPartition(): Promise<void> {
    const name = partitionOf(longAgo);
    const month = longAgo.toISOString().slice(0, 7);
    await pool.query(
      `create table ${name} (like booking_events including all);
       do $$ begin execute format('alter table booking_events attach partition ${name} for values from (%L) to (%L)',
         first_event_id('${month}-01Z'), first_event_id('${month}-01Z'::timestamptz + interval '28 days')); end $$`,
    );
  }

  /** Instead of creating partitions. */
  async function failBy(statement: string): Promise<void> {
    await pool.query(
      `create or replace function create_log_partitions(months_ahead integer) returns setof text language plpgsql
       as $$ begin ${statement}; end $$`,
    );
  }

  test("is reported with what an operator has to drop, and keeps no other from its work", async () => {
    await pool.query(`create view old_events as select from ${partitionOf(longAgo)}`);
    const { problems, removed, droppedPartitions } = await maintain(pool, rules, clocksAgree);
    expect(problems).toEqual([
      expect.stringMatching(
        /^PostgreSQL could not drop an old partition \(2BP01\): .*view old_events depends on table/,
      ),
    ]);
    expect(removed).toMatchObject({ bookings: 1, dead_letters: 1 });
    expect(droppedPartitions).toEqual([]);
    await pool.query("drop view old_events");
    expect(await maintain(pool, rules, clocksAgree)).toMatchObject({
      problems: [],
      droppedPartitions: [partitionOf(longAgo)],
    });
  });

  test("is reported without what the tables hold", async () => {
    await pool.query("alter table bookings add constraint kept check (payload is not null)");
    await failBy(`perform 'Guest'::integer`);
    const { problems, removed } = await maintain(pool, rules, clocksAgree);
    expect(problems).toEqual([
      "PostgreSQL could not create a partition (22P02): its own log says why.",
      expect.stringMatching(/^PostgreSQL could not remove the content .* \(23514\): .*"kept"\.$/),
    ]);
    expect(problems.join()).not.toContain("Guest");
    expect(removed.dead_letters).toBe(1);
  });

  test("because it takes too long is reported, too", async () => {
    await failBy("perform pg_sleep(3600)");
    const limits = { statementTimeoutMs: 1_000 };
    const options = { databaseUrl: url, applicationName: "test", maxConnections: 2, onError: () => {} };
    const hasty = createPool({ ...options, limits });
    try {
      const { problems, removed } = await maintain(hasty, rules, clocksAgree);
      expect(problems).toEqual([
        "PostgreSQL could not create a partition (57014): canceling statement due to statement timeout.",
      ]);
      expect(removed).toMatchObject({ bookings: 1, dead_letters: 1 });
    } finally {
      await hasty.end();
    }
  });

  test("because of a deadlock is tried again later, as if a table were locked", async () => {
    await failBy("raise exception using errcode = 'deadlock_detected'");
    expect(await maintain(pool, rules, clocksAgree)).toMatchObject({
      problems: [],
      isLocked: true,
      removed: { bookings: 1 },
    });
  });

  test("because its connection ends ends the run", async () => {
    await failBy("perform pg_terminate_backend(pg_backend_pid())");
    await expect(maintain(pool, rules, clocksAgree)).rejects.toMatchObject({ code: "57P01" });
  });
});

describe("wrong clocks", () => {
  const rules: RetentionRules = { retentionDays: 400, deletedRetentionDays: 30, deadLetterRetentionDays: 90 };
  const longAgo = monthsFromNow(-30);

  beforeEach(async () => {
    await pool.query("drop schema if exists public, public_test_partners cascade; create schema public");
    await migrate(url);
    await log(idAt(longAgo), longAgo);
    await insertDeletedBooking("TRIP-1", longAgo);
  });

  async function readRows(): Promise<unknown> {
    const { rows } = await pool.query(
      `select (select count(*)::int from booking_events) as events, horizon,
         (select count(*)::int from bookings where payload is not null) as "bookingsWithContent"
       from log_retention`,
    );
    return rows[0];
  }

  test("let nothing be removed, and partitions are created all the same", async () => {
    const name = partitionOf(monthsFromNow(2));
    await pool.query(`drop table ${name}`);
    const findClockProblem = vi.fn(async () => "PostgreSQL's clock is wrong.");
    const done = await maintain(pool, rules, { findClockProblem });
    expect(done.problems).toEqual(["Nothing is removed. PostgreSQL's clock is wrong."]);
    expect(done).toMatchObject({ createdPartitions: [name], removed: { booking_events: 0, bookings: 0 } });
    expect(await readRows()).toEqual({ events: 1, horizon: null, bookingsWithContent: 1 });
    expect(findClockProblem).toHaveBeenCalledExactlyOnceWith({
      clockAheadMs: expect.closeTo(0, -4),
      newestEventMs: longAgo.getTime(),
    });
    expect((await maintain(pool, rules, clocksAgree)).removed).toMatchObject({ booking_events: 1, bookings: 1 });
  });

  test("need not be compared if everything is kept", async () => {
    const findClockProblem = vi.fn(async () => null);
    await maintain(pool, keepAll, { findClockProblem });
    expect(findClockProblem).not.toHaveBeenCalled();
  });

  test.each([-6, 6])("are found by PostgreSQL itself, if the caller's differs by %d minutes", async (minutes) => {
    const at = new Date(Date.now() + minutes * 60_000);
    const before = await readRows();
    for (const call of [
      "drop_log_partition(400, $1)",
      "delete_old_events(400, $1, 10)",
      "delete_old_changes(400, $1, 10)",
      "empty_deleted_bookings(30, $1, 10, 10)",
      "delete_old_dead_letters(90, 400, $1, 10)",
      "delete_old_operator_actions(400, $1, 10)",
    ])
      await expect(pool.query(`select ${call}`, [at]), call).rejects.toMatchObject({ code: "55000" });
    expect(await readRows()).toEqual(before);
  });

  test("let nothing be removed, if the host and PostgreSQL on it are set ahead after the clocks were compared", async () => {
    const before = await readRows();
    const findClockProblem = async () => {
      await pool.query(
        `do $$ begin
           execute replace(pg_get_functiondef('agreed_time'::regproc), 'now()', '(now() + interval ''440 days'')');
         end $$`,
      );
      vi.setSystemTime(Date.now() + 440 * day);
      return null;
    };
    vi.useFakeTimers({ toFake: ["Date"] });
    try {
      const { problems, removed } = await maintain(pool, rules, { findClockProblem });
      expect(Object.values(removed)).toEqual([0, 0, 0, 0, 0]);
      expect(problems).toHaveLength(6);
      expect(problems[0]).toMatch(/\(55000\): the clocks of PostgreSQL .* differ by more than five minutes/);
    } finally {
      vi.useRealTimers();
    }
    expect(await readRows()).toEqual(before);
  });

  test("never move the horizon into the future", async () => {
    await expect(pool.query("update log_retention set horizon = now() + interval '1 second'")).rejects.toMatchObject({
      code: "23514",
    });
    await pool.query("select drop_log_partition(-1000, now())");
    const { rows } = await pool.query("select horizon < now() - interval '23 hours' as \"isPast\" from log_retention");
    expect(rows).toEqual([{ isPast: true }]);
  });

  test("by which rows got times of long ago do not get these removed when they are right again", async () => {
    // Written by a PostgreSQL whose clock was far behind, for an event that came now.
    await log(idAt(monthsFromNow(200)), now);
    await pool.query("update booking_events set processed_at = $1", [longAgo]);
    await pool.query(
      `insert into booking_changes (id, booking_id, partner, reference_kind, reference, revision, change, event_id,
         sequence, changed_at)
       values (1, gen_random_uuid(), 'acme', 'trip', 'T', 1, 'created', gen_random_uuid(), $2, $1)`,
      [longAgo, now.getTime() * 1_000],
    );
    await pool.query(
      `insert into dead_letters (event_id, sequence, error_code, error, attempts, envelope, failed_at)
       values (gen_random_uuid(), $2, 'X', 'x', 1, '', $1)`,
      [longAgo, now.getTime() * 1_000],
    );
    const { removed } = await maintain(pool, rules, clocksAgree);
    expect(removed).toEqual({
      booking_events: 1,
      booking_changes: 0,
      bookings: 1,
      dead_letters: 0,
      operator_actions: 0,
    });
    expect(Object.keys(await places())).toEqual([idAt(monthsFromNow(200))]);
  });
});

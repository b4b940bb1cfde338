import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { waitFor } from "@booking-events/harness";
import { discard, type PostgresStandby, startPostgresStandby } from "@booking-events/harness/postgres-standby";
import { execute } from "@booking-events/harness/test-database";
import { type PostgresServer, startPostgres } from "@booking-events/scripts/services";
import { appendChanges, type ChangeToInsert, createPool, inTransaction, migrate } from "@booking-events/store";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type FollowOptions, follow } from "./follow.ts";

const folder = mkdtempSync(join(tmpdir(), "booking-events-feed-"));
let primary: PostgresServer;
let standby: PostgresStandby;
let pool: ReturnType<typeof createPool>;
const running: { controller: AbortController; ended: Promise<void> }[] = [];

beforeAll(async () => {
  primary = await startPostgres({ dir: join(folder, "primary") });
  await migrate(primary.url);
  standby = await startPostgresStandby({ primary, dir: join(folder, "standby") });
  pool = createPool({ databaseUrl: primary.url, applicationName: "test", maxConnections: 2, onError: () => {} });
});

beforeEach(() =>
  pool.query(
    `truncate booking_changes, bookings, feed_cursors;
     update feed_position set last_id = 0;
     create table if not exists handled (id bigint primary key);
     truncate handled`,
  ),
);

afterEach(async () => {
  for (const { controller } of running) controller.abort();
  await Promise.all(running.splice(0).map(({ ended }) => ended));
});

afterAll(async () => {
  await pool?.end();
  discard(standby, primary);
  rmSync(folder, { recursive: true, force: true });
});

let number = 0;

async function append(count: number, database = pool): Promise<void> {
  for (let added = 0; added < count; added += 1) {
    number += 1;
    const change: ChangeToInsert = {
      ...{ partner: "acme", referenceKind: "trip", reference: `TRIP-${number}`, revision: 1, change: "created" },
      ...{ eventId: `0199a000-0000-7000-8000-${String(number).padStart(12, "0")}`, sequence: number },
      previousEventId: null,
    };
    await inTransaction(database, (client) => appendChanges(client, [change]));
  }
}

async function addBooking(database: typeof pool, reference: string): Promise<void> {
  await database.query(
    `insert into bookings (booking_key, partner, reference_kind, reference, state, event_id, sequence, revision,
       last_sequence, created_at, updated_at)
     values ('k', 'acme', 'trip', $1, 'deleted', '0199a000-0000-7000-8000-00000000ffff', 1, 1, 1, now(), now())`,
    [reference],
  );
}

/** Follows, and writes down each change on the primary. @returns what was logged */
function start(options: Partial<FollowOptions> = {}): string[] {
  const controller = new AbortController();
  const logged: string[] = [];
  const log = (_: object, message: string) => void logged.push(message);
  const ended = follow({
    ...{ name: "reader", database: primary.url, readDatabase: standby.url, pollIntervalMs: 200 },
    ...{ signal: controller.signal, logger: { info: log, warn: log } },
    onChange: async ({ id }, { client }) => void (await client.query("insert into handled values ($1)", [id])),
    ...options,
  });
  running.push({ controller, ended });
  return logged;
}

async function untilHandled(count: number): Promise<void> {
  await waitFor(async () => {
    const { rows } = await pool.query<{ id: number }>("select id from handled order by id");
    expect(rows.map(({ id }) => id)).toEqual(Array.from({ length: count }, (_, index) => index + 1));
  });
}

/** Waits until the reader's last statement on a server has read the feed. */
async function untilRead(url: string): Promise<void> {
  const reader = createPool({ databaseUrl: url, applicationName: "test", maxConnections: 1, onError: () => {} });
  try {
    await waitFor(async () => {
      const { rows } = await reader.query<{ count: number }>(
        "select count(*)::integer from pg_stat_activity where application_name = 'reader' and query like '%booking_changes%'",
      );
      return (rows[0]?.count ?? 0) > 0;
    });
  } finally {
    await reader.end();
  }
}

describe("a reader of a standby", () => {
  test("handles each change once, and keeps its place on the primary", async () => {
    start();
    await append(30);
    await untilHandled(30);
    await untilRead(standby.url);
    const { rows } = await pool.query("select last_id as last from feed_cursors");
    expect(rows).toEqual([{ last: 30 }]);
  });

  test("skips nothing while the standby's replay is paused, and goes on with the standby afterwards", async () => {
    await append(3);
    start();
    await untilHandled(3);
    await execute(standby.url, "select pg_wal_replay_pause()");
    try {
      await append(5);
      await untilHandled(8);
    } finally {
      await execute(standby.url, "select pg_wal_replay_resume()");
    }
    await append(5);
    await untilHandled(13);
  });

  test("reads from the primary while the standby is down", async () => {
    standby.kill("SIGKILL");
    await standby.ended();
    const logged = start();
    await append(3);
    await untilHandled(3);
    expect(logged).toContain("the standby failed: reading from the primary");
    await standby.restart();
  });

  test("handles the changes of a promoted primary, not those that only another standby has received", async () => {
    await execute(primary.url, "create database former_primary");
    const formerUrl = primary.url.replace(/[^/]*$/, "former_primary");
    await migrate(formerUrl);
    const former = createPool({
      databaseUrl: formerUrl,
      applicationName: "test",
      maxConnections: 1,
      onError: () => {},
    });
    await append(3, former).finally(() => former.end());
    await append(3);
    const { rows: expected } = await pool.query("select reference from booking_changes order by id");
    const handled: string[] = [];
    start({ readDatabase: formerUrl, onChange: async ({ reference }) => void handled.push(reference) });
    await waitFor(() => handled.length >= 3);
    expect(handled).toEqual(expected.map(({ reference }) => reference));
  });

  test("begins with the standby's snapshot, and continues after its position, however old it is", async () => {
    await append(2);
    await addBooking(pool, "T1");
    await waitFor(async () => {
      const { rows } = await pool.query<{ isCurrent: boolean }>(
        `select bool_and(replay_lsn >= pg_current_wal_lsn()) as "isCurrent" from pg_stat_replication`,
      );
      return rows[0]?.isCurrent === true;
    });
    await execute(standby.url, "select pg_wal_replay_pause()");
    try {
      await append(2);
      await pool.query("delete from bookings");
      const snapshots: unknown[] = [];
      start({
        from: "snapshot",
        onSnapshot: async (bookings, { position }) =>
          void snapshots.push({ position, references: bookings.map(({ reference }) => reference) }),
      });
      await waitFor(async () => {
        const { rows } = await pool.query("select id from handled order by id");
        expect(rows).toEqual([{ id: 3 }, { id: 4 }]);
      });
      expect(snapshots).toEqual([{ position: 2, references: ["T1"] }]);
    } finally {
      await execute(standby.url, "select pg_wal_replay_resume()");
    }
  });

  // The last test: the standby follows the primary no longer.
  test("takes no snapshot of a server that has left the primary's history", async () => {
    await execute(standby.url, "select pg_promote()");
    await addBooking(pool, "T1");
    const promoted = createPool({
      ...{ databaseUrl: standby.url, applicationName: "test", maxConnections: 1, onError: () => {} },
    });
    await addBooking(promoted, "T2").finally(() => promoted.end());
    const references: string[] = [];
    start({
      from: "snapshot",
      onSnapshot: async (bookings) => void references.push(...bookings.map(({ reference }) => reference)),
    });
    await waitFor(() => references.length > 0);
    expect(references).toEqual(["T1"]);
  });
});
